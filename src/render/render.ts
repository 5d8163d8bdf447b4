import { resolve } from "node:path";
import { GRACE_MS, orGivenUp } from "../base/abort.js";
import { LatentkitError } from "../base/errors.js";
import { checkOptions, type OptionRules, pickOptions, rulesWithout } from "../base/options.js";
import type { RunEvent } from "../graph/events.js";
import { runGraph } from "../graph/execute.js";
import { JOB_RULES, type Job, jobOf } from "../graph/job.js";
import { findDefinition, type Graph, parseGraph } from "../graph/parse.js";
import { type InternalField, SURROUNDINGS_RULES, type Surroundings } from "../graph/surroundings.js";
import { withoutUnknown } from "../graph/topology.js";
import { InputFiles } from "../io/files/input-files.js";
import { counterFiles, MemoryFiles, type OutputFiles, type OutputHandling } from "../io/files/output-files.js";
import type { Registry } from "../nodes/registry.js";
import { fillGraph } from "./fill/fill.js";
import { canonicalValues, nodesOfKeys } from "./fill/targets.js";
import { createReceipts } from "./receipt/receipt.js";
import { infotextOf } from "./receipt/settings.js";
import { redactMetadata } from "./redact.js";
import { createUnfilled, refuseUnwritable } from "./refuse-wrong.js";
import { createFold, type RenderResult, type RunOutcome, resultOf } from "./result.js";
import { readGraph } from "./source.js";
import { defaultHost, openSurroundings, surroundingsOf } from "./surroundings.js";

/** Options of one render: its job, and live objects around it. */
export interface RenderOptions extends Omit<Job, "validate" | "runId">, Partial<Omit<Surroundings, InternalField>> {}

const RENDER_RULES: OptionRules<RenderOptions> = {
  ...rulesWithout(JOB_RULES, "validate", "runId"),
  ...SURROUNDINGS_RULES,
};

/**
 * Renders one graph: an object, JSON text, or the bytes, the path or the file: URL of a JSON file or of a picture that
 * carries a graph; in API format or as the editor saves it. Rejects with a LatentkitError if the graph or an option is
 * wrong, before anything is written, and with the reason of `signal` if that aborts; a node that fails later shows in
 * `status`. A node that does not listen to an abort is abandoned after 2 s: it can then no longer write.
 */
export async function render(graph: string | object, options: RenderOptions = {}): Promise<RenderResult> {
  checkOptions("render", options, RENDER_RULES);
  options.signal?.throwIfAborted();
  return resultOf(await renderOutcome(graph, options), options.signal, "The run was interrupted.");
}

/** `render` with checked options, for callers that show what an interrupted run has left. */
export async function renderOutcome(graph: string | object, options: RenderOptions): Promise<RunOutcome> {
  const job = jobOf(options);
  const given = pickOptions<Omit<RenderOptions, keyof Job>>(options, SURROUNDINGS_RULES);
  // the graph and the values are read before the caller goes on, who may change them for the next render
  if (job.setup === undefined) return renderJob(graph, job, surroundingsOf(job, given));
  return renderJob(graph, job, await openSurroundings(job, given));
}

/** Renders one graph. The job is checked; a setup module that it names has been called. An abort shows in the status. */
export async function renderJob(graph: string | object, job: Job, surroundings: Surroundings): Promise<RunOutcome> {
  const render = prepareRender(graph, job, surroundings);
  const { metadata, parsed, set, visible, inputDir, outputDir } = render;
  const { inputs, receipts, memory, outputHandling, close } = openOutput(render, job, surroundings);
  const { registry, signal, clock, hasTransientEvents = surroundings.onEvent === undefined } = surroundings;
  const fold = createFold(outputDir, memory);
  /** A node did not listen to an abort: its further reports and files do not count. */
  let isLeft = false;
  let nodeId: string | undefined;
  const emit = (event: RunEvent) => {
    fold.add(event);
    surroundings.onEvent?.(event);
  };
  const onEvent = (event: RunEvent) => {
    if (isLeft) return;
    emit(event);
    if (event.type === "node-start") nodeId = event.nodeId;
    else if (event.type === "run-done") receipts?.end();
    else if (event.type === "run-start") {
      for (const warning of graphWarnings(parsed, { ...job, set }, registry, event.at)) emit(warning);
      receipts?.begin(event.nodeIds);
    }
  };
  const extraPnginfo = metadata === "full" ? (visible.extraPnginfo as Job["extraPnginfo"]) : undefined;
  const run = { ...job, outputDir, inputDir, extraPnginfo, partial: job.partial ?? false };
  const metadataPrompt = metadata === "none" ? null : visible.prompt;
  const volatileNodes = job.passing && nodesOfKeys(parsed.prompt, job.passing);
  const facts = { inputs, outputHandling, hasTransientEvents, metadataPrompt, volatileNodes, rewritesFiles: true };
  const running = runGraph(render.prompt, run, { ...surroundings, ...facts, onEvent });
  const isEnded = await orGivenUp(running, signal, GRACE_MS).then(
    () => true,
    (error: unknown) => {
      if (signal?.aborted) return false;
      throw error;
    },
  );
  if (isEnded) return fold.end();
  isLeft = true;
  close();
  const at = (clock?.() ?? new Date()).getTime();
  emit({ type: "interrupted", nodeId, at });
  emit({ type: "run-done", status: "interrupted", outputs: {}, ui: {}, at });
  return { ...fold.end(), status: "interrupted", error: undefined };
}

/** Reads and fills the graph of a render, and derives the texts for its pictures. */
function prepareRender(graph: string | object, job: Job, { registry, clock }: Surroundings) {
  const { metadata = "full", classAliases = {}, redact = [] } = job;
  refuseUnwritable(job);
  const source = readGraph(graph, { registry, classAliases, clock, targets: job.targets });
  const parsed = withoutUnknown(parseGraph(source.graph, { classAliases }), registry, job.targets);
  const definitionOf = (type: string) => findDefinition(parsed, type, registry);
  const set = canonicalValues(parsed.prompt, job.set ?? {}, definitionOf);
  const prompt = fillGraph(parsed.prompt, set, definitionOf);
  // a workflow other than the graph that ran would mislead anyone who opens the picture in the editor
  const isAsSaved = Object.keys(set).length === 0 && redact.length === 0;
  const extraPnginfo = job.extraPnginfo ?? (isAsSaved && source.workflow ? { workflow: source.workflow } : undefined);
  const visible = redactMetadata({ prompt, extraPnginfo }, redact, definitionOf);
  const inputDir = resolve(job.inputDir ?? source.inputDir);
  return { metadata, parsed, set, prompt, visible, inputDir, outputDir: resolve(job.outputDir ?? "out") };
}

/** Input files of a render, receipts, and the files that its nodes write. After `close` nothing is written. */
function openOutput(
  { metadata, prompt, visible, inputDir }: ReturnType<typeof prepareRender>,
  { files, classAliases = {}, redact = [], allowNetwork, output, parameters, format }: Job,
  { registry, host = defaultHost, signal, outputHandling, isBlocking }: Surroundings,
) {
  const isShown = metadata !== "none";
  const isOffline = allowNetwork === false;
  const inputs = new InputFiles({ folder: inputDir, files, isOffline, isBlocking, hashesReads: isShown });
  const shown = { prompt, shownPrompt: visible.prompt, redact, classAliases };
  const receipts =
    isShown && outputHandling?.receipt === undefined
      ? createReceipts({ ...shown, registry, host, inputDir, files, inputs, signal })
      : undefined;
  const memory = output === "memory" ? new MemoryFiles() : undefined;
  const closable = createClosable(outputHandling?.files ?? memory ?? counterFiles);
  const handling: OutputHandling = {
    ...outputHandling,
    files: closable.files,
    receipt: isShown ? (outputHandling?.receipt ?? receipts?.of) : undefined,
    parameters:
      isShown && parameters === true
        ? async (nodeId, size) => infotextOf(visible.prompt, nodeId, size, await receipts?.modelsOf(nodeId))
        : undefined,
    format,
  };
  const close = () => {
    closable.close();
    receipts?.end();
  };
  return { inputs, receipts, memory, outputHandling: handling, close };
}

/** Warnings about the graph itself: its notes, and placeholders that no value is set for. */
function graphWarnings(graph: Graph, { set = {}, targets }: Job, registry: Registry, at: number): RunEvent[] {
  const unfilled = createUnfilled(graph, { registry, targets })(new Set(Object.keys(set)));
  const warnings = unfilled.map(({ nodeId, message }): RunEvent => ({ type: "warning", nodeId, message, at }));
  return [...graph.notes.map((message): RunEvent => ({ type: "warning", message, at })), ...warnings];
}

/** Files that can be written until `close`: an abandoned node comes too late. */
function createClosable(files: OutputFiles): { readonly files: OutputFiles; close(): void } {
  let isClosed = false;
  const open = (): OutputFiles => {
    if (isClosed) throw new LatentkitError("run.interrupted", "The run was interrupted: nothing more is written.");
    return files;
  };
  return {
    files: {
      keepsBytes: files.keepsBytes,
      makeFolder: async (...args) => open().makeFolder(...args),
      writeNumbered: async (...args) => open().writeNumbered(...args),
      writeNew: async (...args) => open().writeNew(...args),
      writeReplacing: async (...args) => open().writeReplacing(...args),
      writeAppending: async (...args) => open().writeAppending(...args),
    },
    close: () => {
      isClosed = true;
    },
  };
}
