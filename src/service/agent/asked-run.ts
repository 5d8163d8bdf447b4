import { setImmediate as nextTurn } from "node:timers/promises";
import { unwrapGraph } from "../../graph/unwrap-graph.js";
import { parseJson, printJsonUnicode } from "../../io/json/lossless.js";
import type { Job } from "../../render/job.js";
import type { AgentRun, PromptFacts, RunGraph } from "./agent.js";
import type { AgentGraph } from "./agent-graphs.js";
import { mayReferToAssets, readAssets } from "./asset-references.js";
import { fillsOf, unusedEvents } from "./message.js";

/** A graph as its run renders it. */
export interface AskedRun {
  readonly text: string;
  /** Its nodes, whose classes are looked up; the thread that renders reads the text. */
  readonly prompt: Readonly<Record<string, unknown>>;
  /** Whether a client of ComfyUI's classic API asks. */
  readonly isForComfy: boolean;
  readonly warnings: readonly string[];
  readonly job: Job;
}

/** Most bytes of the assets of one graph: they are in memory while it is rendered. */
const MOST_ASSET_BYTES = 256 * 1024 * 1024;

/** A graph with names in the place of its assets, and the assets' bytes by these names. Fails with file.not-found. */
export const assetsOf = (graph: object, assetsDir: string) =>
  readAssets(graph as Record<string, unknown>, { assetsDir, mostBytes: MOST_ASSET_BYTES });

/** A named graph, filled by a message. Throws usage.invalid for one that its schema does not allow. */
export function namedRun({ run, prompt, notes, parameters }: AgentGraph, message: string): AskedRun {
  const set = fillsOf(message, parameters);
  const unused = unusedEvents(message);
  const warnings = unused === undefined ? notes : [...notes, unused];
  // the next message is another one: results that follow from this one would only fill the cache
  const job: Job = { set, passing: Object.keys(set) };
  return { text: run.text, prompt, isForComfy: false, warnings, job };
}

/** A graph that came with its request, and what a client of the classic API said of it. Fails with file.not-found. */
export async function postedRun(
  { text }: RunGraph,
  { promptFacts }: Pick<AgentRun, "promptFacts">,
  { assetsDir, extraPnginfo }: { assetsDir: string } & Pick<Job, "extraPnginfo">,
): Promise<AskedRun> {
  // its store has just read it: other requests have their turn before a long one is parsed
  await nextTurn();
  // the nodes that are wanted, and the files at hand, are those of the agent's graphs
  const job: Job = { targets: undefined, files: undefined };
  if (promptFacts !== undefined) {
    const facts = parseJson(promptFacts) as PromptFacts;
    job.partial = true;
    job.partialExecutionTargets = facts.targets;
    job.extraPnginfo = { ...extraPnginfo, ...facts.extraPnginfo };
  }
  const own = { isForComfy: promptFacts !== undefined, warnings: [], job };
  // only classes are looked up: these digits do not matter
  if (!mayReferToAssets(text)) return { ...own, text, prompt: unwrapGraph(JSON.parse(text)) };
  const { graph, files } = await assetsOf(parseJson(text) as object, assetsDir);
  job.files = files;
  return { ...own, text: printJsonUnicode(graph), prompt: unwrapGraph(graph) };
}
