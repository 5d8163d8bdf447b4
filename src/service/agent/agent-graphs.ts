import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, LatentkitError } from "../../base/errors.js";
import type { Job } from "../../graph/job.js";
import { findDefinitions, type Graph, parseGraph } from "../../graph/parse.js";
import type { Surroundings } from "../../graph/surroundings.js";
import { unwrapGraph } from "../../graph/wrappers.js";
import { refuseReservedKeys } from "../../io/files/save-images.js";
import { parseJson, printJsonUnicode } from "../../io/json/lossless.js";
import { refuseTargets } from "../../render/refuse-wrong.js";
import { type Parameter, parametersOf, schemaOf } from "../../render/schema/graph-schema.js";
import { type GraphSource, readGraph } from "../../render/source.js";
import { defaultRegistry } from "../../render/surroundings.js";
import type { AgentGraphs, AgentRun, PromptFacts, RunGraph } from "./agent.js";
import { mayReferToAssets, readAssets } from "./asset-references.js";
import { fillsOf, unusedEvents } from "./message.js";

/** Name of the graph for runs that do not name one. */
const DEFAULT = "default";
const NAME = /^[A-Za-z][\w.-]{0,63}$/;

/** A graph, ready to be rendered for messages. */
interface AgentGraph {
  readonly run: RunGraph;
  readonly prompt: Graph["prompt"];
  /** Sentences about what is not in the graph: warnings of each of its runs. */
  readonly notes: Graph["notes"];
  readonly parameters: readonly Parameter[];
}

/** Sources of an agent's graphs, as `readGraph` reads them. */
export interface GraphSources {
  /** Graph for runs that do not name one, called "default"; absent: the first of `graphs`. */
  readonly graph?: string | object;
  /** Graphs by the names that requests choose them by. */
  readonly graphs?: Readonly<Record<string, string | object>>;
}

/** The options that decide whether a graph is right. */
export interface GraphContext extends Pick<Job, "classAliases" | "targets" | "extraPnginfo" | "setup" | "partial"> {
  readonly registry?: Surroundings["registry"];
}

/** Reads the sources; the first one is the default. Throws usage.invalid for a wrong name, else as `readGraph` does. */
export function readSources(
  { graph, graphs = {} }: GraphSources,
  { registry, classAliases }: Pick<GraphContext, "registry" | "classAliases">,
): ReadonlyMap<string, GraphSource> {
  const named = Object.entries(graphs);
  const wrong = named.find(([name]) => !NAME.test(name) || (name === DEFAULT && graph !== undefined))?.[0];
  if (wrong !== undefined) {
    const rule = `has 1 to 64 characters (letters, digits, _ . -) and starts with a letter${graph === undefined ? "" : `, and is not "${DEFAULT}"`}`;
    throw new LatentkitError("usage.invalid", `graphs: a name ${rule}; received ${describe(wrong)}.`);
  }
  const all = graph === undefined ? named : [[DEFAULT, graph] as const, ...named];
  if (all.length === 0)
    throw new LatentkitError("usage.invalid", "graphs: expected at least one graph, received none.");
  return new Map(all.map(([name, source]) => [name, readGraph(source, { registry, classAliases })]));
}

// decisions: A run keeps the text of its graph
/** The graphs of an agent by their names. Runs keep the one that they were accepted with. */
export class NamedGraphs implements Pick<AgentGraphs, "default" | "names" | "find" | "schemaOf"> {
  readonly #context: GraphContext;
  #graphs: ReadonlyMap<string, AgentGraph>;

  /** Throws if a graph is wrong or names an unknown class. */
  constructor(sources: ReadonlyMap<string, GraphSource>, context: GraphContext) {
    this.#context = context;
    refuseReservedKeys(context.extraPnginfo);
    this.#graphs = this.#prepareAll(sources);
  }

  /** Puts other graphs in their place: all of them, or none if one is wrong, as the constructor throws. */
  replace(sources: ReadonlyMap<string, GraphSource>): void {
    this.#graphs = this.#prepareAll(sources);
  }

  get default(): RunGraph {
    return this.#first.run;
  }

  get names(): readonly string[] {
    return [...this.#graphs.keys()];
  }

  find(name: string): RunGraph | undefined {
    return this.#graphs.get(name)?.run;
  }

  schemaOf(name: string): object | undefined {
    const graph = this.#graphs.get(name);
    return graph && schemaOf(graph.parameters);
  }

  /** Returns the graph of a run, whose name may mean another one by now. */
  of(run: RunGraph | undefined): AgentGraph {
    if (run === undefined) return this.#first;
    const name = run.name ?? DEFAULT;
    const current = this.#graphs.get(name);
    return current?.run.text === run.text ? current : this.#prepare(name, run.text);
  }

  get #first(): AgentGraph {
    return this.#graphs.values().next().value!;
  }

  #prepareAll(sources: ReadonlyMap<string, GraphSource>): ReadonlyMap<string, AgentGraph> {
    return new Map([...sources].map(([name, { graph }]) => [name, this.#prepare(name, graph)]));
  }

  #prepare(name: string, source: string | object): AgentGraph {
    const { registry, setup, targets } = this.#context;
    const graph = parseGraph(source, this.#context);
    refuseTargets(graph, targets);
    // nodes of a setup module exist only in the threads
    if (setup === undefined) findDefinitions(graph, registry ?? defaultRegistry);
    const parameters = this.#parametersOf(graph);
    return {
      run: { name, text: printJsonUnicode(graph.prompt) },
      prompt: graph.prompt,
      notes: graph.notes,
      parameters,
    };
  }

  /**
   * Parameters that a message is checked against. Only scalars count if a setup module may replace nodes of the
   * package, or if an output that cannot be computed from a value is left out.
   */
  #parametersOf(graph: Graph): readonly Parameter[] {
    const { registry, setup, partial } = this.#context;
    const parameters = parametersOf(graph, { registry: registry ?? defaultRegistry, named: true });
    if (setup === undefined && !partial) return parameters;
    return parameters.map(({ property: { title }, ...rest }) => ({ ...rest, property: { title } }));
  }
}

/** Folder of a run. A worker that was lost may still write: the next one never shares its folder. */
export const runFolder = (outputDir: string, { id, attempt }: Pick<AgentRun, "id" | "attempt">): string =>
  join(outputDir, "runs", attempt === undefined ? id : `${id}.${attempt}`);

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
