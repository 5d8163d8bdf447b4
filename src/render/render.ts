import { resolve } from "node:path";
import type { LatentkitError } from "../errors.js";
import type { Cache } from "../graph/cache.js";
import type { DiskCache } from "../graph/disk-cache/disk-cache.js";
import type { RunEvent } from "../graph/events.js";
import { findDefinition, parseGraph } from "../graph/parse.js";
import type { Host } from "../host/types.js";
import { counterFiles, type OutputHandling } from "../io/output-files.js";
import type { NodeConfig } from "../nodes/define.js";
import type { Registry } from "../nodes/registry.js";
import { checkOptions } from "../options.js";
import type { DeviceChoice } from "../tensor/device-choice.js";
import { type METADATA_POLICIES, RENDER_RULES } from "./check-options.js";
import { defaultHost, defaultRegistry, runGraph } from "./defaults.js";
import { filesOf, type RenderedFile } from "./files.js";
import { fillGraph, nodesOfKeys } from "./fill.js";
import { createClosable, GRACE_MS, orGivenUp } from "./give-up.js";
import { createReceipts } from "./receipt/receipt.js";
import { redactMetadata } from "./redact.js";
import { runSetup } from "./setup-module.js";
import { readGraph } from "./source.js";
import { createUnfilled } from "./unfilled.js";

/** What a PNG file carries: "full" graph and receipt, "prompt" the graph alone, "none" neither. */
export type MetadataPolicy = (typeof METADATA_POLICIES)[number];

/** Options of `render`. Everything may be absent. */
export interface RenderOptions {
  /** "6.text" sets an input of node 6; any other key fills the placeholder {{key}}. */
  set?: Readonly<Record<string, unknown>>;
  /** Nodes to compute; the graph's output nodes where absent. */
  targets?: readonly string[];
  registry?: Registry;
  host?: Host;
  /** A module whose default export (or `setup`) is `() => ({ registry, host })`. */
  setup?: URL;
  /** ./out where absent. */
  outputDir?: string;
  /** `input` beside the graph's file where that exists, else ./input. */
  inputDir?: string;
  /** Other names of node classes: prefix to prefix, or whole key to whole key. */
  classAliases?: Readonly<Record<string, string>>;
  /** Further texts for the PNG files, a chunk for each key. */
  extraPnginfo?: Readonly<Record<string, unknown>>;
  /** "full" where absent. */
  metadata?: MetadataPolicy;
  /** Keys whose values PNG files hide: "6.text", or a bare key at any depth of the graph and of extra_pnginfo. */
  redact?: readonly string[];
  config?: NodeConfig;
  /** An output that cannot be computed is left out, with a warning, and the others are; false: it refuses the graph. */
  partial?: boolean;
  /** false: a graph is refused in which a node that runs reaches the network or uses a key. */
  allowNetwork?: boolean;
  /** Where tensors are computed: "auto", "cpu" or "cuda:N"; see the README. LATENTKIT_DEVICE where absent, else auto. */
  device?: DeviceChoice;
  /** Names and receipts of saved images; where absent the next free counter, and what made them. */
  output?: OutputHandling;
  /** Results that runs share: what does not change between them is computed once. Files are always written anew. */
  cache?: Cache;
  /** The same on a disk, shared with other processes, for results that cost some time; nodes that write files run. */
  diskCache?: DiskCache;
  /** Keys of `set` whose values other runs will not have: the cache keeps nothing that follows from them. */
  passing?: readonly string[];
  clock?: () => Date;
  fetch?: typeof fetch;
  signal?: AbortSignal;
  /** Hears each event at once, before a node that never lets go of the thread begins. Must not throw. */
  onEvent?: (event: RunEvent) => void;
}

/** The same for callers inside the package. */
export interface RenderSettings extends RenderOptions {
  /** Nobody keeps values out of the run's events. */
  isUnheard?: boolean;
  /** A random one where absent. */
  runId?: string;
}

/** Result of `render`: files, values and times of one run. */
export interface RenderResult {
  readonly status: "success" | "failed" | "interrupted";
  /** Every file written, also by a run that failed later. */
  readonly files: readonly RenderedFile[];
  /** UI results by node id. */
  readonly ui: Readonly<Record<string, Readonly<Record<string, unknown[]>>>>;
  /** Values of the targets by node id, in output order. */
  readonly outputs: Readonly<Record<string, unknown[]>>;
  readonly nodeMs: Readonly<Record<string, number>>;
  readonly warnings: readonly string[];
  /** With `partial`: ids of the outputs that were left out. */
  readonly leftOut: readonly string[];
  /** Why the run failed. */
  readonly error?: LatentkitError;
}

/**
 * Renders one graph: an object, JSON text or a path. Rejects with a LatentkitError where the graph or an option is
 * wrong, before anything is written; a node that fails later, or an abort, is told by `status`. A node that does not
 * listen to an abort has 2 s, then it is left alone: what it writes afterwards is refused.
 */
export async function render(graph: string | object, options: RenderOptions = {}): Promise<RenderResult> {
  checkOptions("render", options, RENDER_RULES);
  return renderChecked(graph, options);
}

/** The same with options that are known to be right. */
export async function renderChecked(graph: string | object, options: RenderSettings): Promise<RenderResult> {
  const { metadata = "full", classAliases = {}, redact = [] } = options;
  const made = options.setup === undefined ? {} : await runSetup(options.setup);
  const registry = options.registry ?? made.registry ?? defaultRegistry;
  const source = readGraph(graph);
  const parsed = parseGraph(source.graph, { classAliases });
  const inputsOf = (type: string) => findDefinition(parsed, type, registry)?.inputs;
  const prompt = fillGraph(parsed.prompt, options.set ?? {}, inputsOf);
  const shown = redactMetadata({ prompt, extraPnginfo: options.extraPnginfo }, redact, inputsOf);
  const host = options.host ?? made.host ?? defaultHost;
  const inputDir = resolve(options.inputDir ?? source.inputDir);
  const outputDir = resolve(options.outputDir ?? "out");
  const receipts = { prompt, shownPrompt: shown.prompt, redact, registry, classAliases, host, inputDir };
  const receipt = metadata === "none" ? undefined : (options.output?.receipt ?? createReceipts(receipts));
  const closable = createClosable(options.output?.files ?? counterFiles);
  const result = createFold(outputDir);
  /** A node did not listen to an abort: what it still says and writes is not heard. */
  let isLeft = false;
  let nodeId: string | undefined;
  const tell = (event: RunEvent) => {
    result.add(event);
    options.onEvent?.(event);
  };
  const onEvent = (event: RunEvent) => {
    if (isLeft) return;
    tell(event);
    if (event.type === "node-start") nodeId = event.nodeId;
    else if (event.type === "run-start") for (const warning of graphWarnings(event)) tell(warning);
  };
  const graphWarnings = ({ at }: RunEvent): RunEvent[] => {
    const unfilled = createUnfilled(parsed, { registry, targets: options.targets });
    const given = new Set(Object.keys(options.set ?? {}));
    const warnings: RunEvent[] = unfilled(given).map(({ nodeId, message }) => ({
      type: "warning",
      nodeId,
      message,
      at,
    }));
    return parsed.note === undefined ? warnings : [{ type: "warning", message: parsed.note, at }, ...warnings];
  };
  const run = runGraph(prompt, {
    registry,
    host,
    targets: options.targets,
    outputDir,
    inputDir,
    classAliases,
    extraPnginfo: metadata === "full" ? shown.extraPnginfo : undefined,
    metadataPrompt: shown.prompt,
    hidePrompt: metadata === "none",
    config: options.config,
    partial: options.partial ?? false,
    allowNetwork: options.allowNetwork,
    output: { ...options.output, files: closable.files, receipt },
    device: options.device,
    cache: options.cache,
    diskCache: options.diskCache,
    passing: options.passing && nodesOfKeys(parsed.prompt, options.passing),
    isUnheard: options.isUnheard ?? options.onEvent === undefined,
    runId: options.runId,
    rewritesFiles: true,
    clock: options.clock,
    fetch: options.fetch,
    signal: options.signal,
    onEvent,
  });
  if (await orGivenUp(run, options.signal, GRACE_MS)) return result.end();
  isLeft = true;
  closable.close();
  const at = (options.clock?.() ?? new Date()).getTime();
  tell({ type: "interrupted", nodeId, at });
  tell({ type: "run-done", status: "interrupted", outputs: {}, ui: {}, at });
  return { ...result.end(), status: "interrupted", error: undefined };
}

/** Gathers a run's events into its result; `end` before the last event means that the run failed. */
export function createFold(outputDir: string) {
  const files: RenderedFile[] = [];
  const ui: Record<string, Record<string, unknown[]>> = {};
  const nodeMs: Record<string, number> = {};
  const warnings: string[] = [];
  let leftOut: readonly string[] = [];
  let error: LatentkitError | undefined;
  let outputs: Record<string, unknown[]> = {};
  let status: RenderResult["status"] = "failed";
  return {
    add(event: RunEvent) {
      if (event.type === "node-done") {
        nodeMs[event.nodeId] = event.ms;
        if (event.ui === undefined) return;
        ui[event.nodeId] = event.ui;
        files.push(...filesOf(event.ui, outputDir));
      } else if (event.type === "node-error") error ??= event.error;
      else if (event.type === "warning") warnings.push(event.message);
      else if (event.type === "run-start") leftOut = event.leftOut ?? [];
      else if (event.type === "run-done") ({ status, outputs } = event);
    },
    end: (): RenderResult => ({
      status,
      files,
      ui,
      outputs,
      nodeMs,
      warnings,
      leftOut,
      error: status === "failed" ? error : undefined,
    }),
  };
}
