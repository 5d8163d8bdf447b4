import { readdir, rm } from "node:fs/promises";
import { dirname, extname, join, relative, resolve, sep } from "node:path";
import { LatentkitError } from "../errors.js";
import { createCache } from "../graph/cache.js";
import type { RunEvent } from "../graph/events.js";
import { type ClassAliases, findDefinitions, parseGraph } from "../graph/parse.js";
import type { Host } from "../host/types.js";
import { printJson } from "../io/json-lossless.js";
import { TEMPORARY_SUFFIX } from "../io/write-file.js";
import type { NodeConfig } from "../nodes/define.js";
import type { Registry } from "../nodes/registry.js";
import { COUNT, checkedLater, checkOptions, isObject, OBJECT, type OptionRules } from "../options.js";
import { RENDER_RULES } from "../render/check-options.js";
import { defaultRegistry } from "../render/defaults.js";
import { filesOf, type RenderedFile } from "../render/files.js";
import { placeholders } from "../render/fill.js";
import { type MetadataPolicy, type RenderResult, render } from "../render/render.js";
import { readGraph } from "../render/source.js";
import { createThreadPool, type ThreadPoolOptions, type ThreadRenderOptions } from "../render/threads/thread-pool.js";
import { chooseDevice, type DeviceChoice } from "../tensor/device-choice.js";
import type { Agent, AgentContext } from "./hooks/types.js";
import { fillsOf } from "./message.js";

/** Options of `createGraphAgent`. */
export interface GraphAgentOptions
  extends Pick<ThreadPoolOptions, "threads" | "setup" | "cacheBytes" | "resourceLimits" | "graceMs"> {
  /** A path, JSON text or an object; read once. Its placeholders are what messages fill. */
  readonly graph: string | object;
  /** Live objects: with either, graphs run on the calling thread. For worker threads: `setup`. */
  readonly host?: Host;
  readonly registry?: Registry;
  /** Each run writes in `runs/<run id>` below. */
  readonly outputDir: string;
  /** `input` beside the graph's file where that exists, else ./input. */
  readonly inputDir?: string;
  readonly config?: NodeConfig;
  /** See `render`. */
  readonly partial?: boolean;
  readonly allowNetwork?: boolean;
  /** See `render`. */
  readonly device?: DeviceChoice;
  readonly classAliases?: ClassAliases;
  readonly metadata?: MetadataPolicy;
  /** See `render`. */
  readonly redact?: readonly string[];
}

const { host, registry, setup, outputDir, inputDir, config, device, classAliases, metadata, redact } = RENDER_RULES;
const { partial, allowNetwork } = RENDER_RULES;

const AGENT_RULES: OptionRules<GraphAgentOptions> = {
  ...{ host, registry, setup, outputDir, inputDir, config, device, classAliases, metadata, redact },
  ...{ partial, allowNetwork },
  graph: ["a path, JSON text or an object", (value) => typeof value === "string" || isObject(value)],
  threads: checkedLater("a whole number"),
  cacheBytes: ["a number of bytes", (value) => typeof value === "number" && value >= 0],
  resourceLimits: OBJECT,
  graceMs: COUNT,
};

/** An agent that renders a graph for each run. Close it to end its threads. */
export interface GraphAgent extends Agent {
  /** Interrupts what runs and ends the threads. */
  close(): Promise<void>;
}

/** A file as events and the response name it; `subfolder` is relative to the output folder. */
interface ReportedFile {
  readonly filename: string;
  readonly subfolder: string;
  readonly type: string;
  readonly url: string;
}

type Renderer = (graph: string, options: ThreadRenderOptions) => Promise<RenderResult>;

const PICTURES: ReadonlySet<string> = new Set([".png", ".jpg", ".jpeg", ".webp", ".gif", ".avif"]);

/**
 * An agent that renders a graph for each run. Emits node_start, progress, node_done, image (file for what is no
 * picture), warning and node_error; answers with the list of files as JSON. Graphs run in worker threads. Fails at once
 * where the graph cannot be read or names an unknown class; a run fails where its message does not fill the graph's placeholders.
 */
export function createGraphAgent(options: GraphAgentOptions): GraphAgent {
  checkOptions("createGraphAgent", options, AGENT_RULES, ["graph", "outputDir"]);
  const source = readGraph(options.graph);
  const parsed = parseGraph(source.graph, { classAliases: options.classAliases });
  // nodes of a setup module are known to the threads alone
  if (options.setup === undefined) findDefinitions(parsed, options.registry ?? defaultRegistry);
  const graph = printJson(parsed.prompt);
  const keys = placeholders(parsed.prompt);
  const outputDir = resolve(options.outputDir);
  const { config, partial, allowNetwork, device, classAliases, metadata, redact } = options;
  chooseDevice(device);
  const inputDir = resolve(options.inputDir ?? source.inputDir);
  const shared = { inputDir, config, partial, allowNetwork, device, classAliases, metadata, redact };
  const renderer = createRenderer(options);

  const agent: Agent = async (run, context) => {
    const folder = join(outputDir, "runs", run.id);
    const reporter = createReporter(parsed.prompt, { outputDir, folder }, context);
    const set = fillsOf(run.message, keys);
    const { signal } = context;
    // the next message is another one: results that follow from this one would only fill the cache
    const own = { set, passing: Object.keys(set), outputDir: folder, signal, onEvent: reporter.hear };
    const result = await renderer.render(graph, { ...shared, ...own });
    if (result.status !== "success") await removeUnfinished(folder);
    if (result.status === "failed") throw result.error ?? new LatentkitError("node.failed", "The run failed.");
    if (result.status === "interrupted") throw new LatentkitError("run.interrupted", "The run was interrupted.");
    return { response: JSON.stringify(reporter.files) };
  };
  return Object.assign(agent, { close: renderer.close });
}

function createRenderer(options: GraphAgentOptions): { render: Renderer; close(): Promise<void> } {
  const { host, registry, threads, setup, cacheBytes, resourceLimits, graceMs } = options;
  if (host === undefined && registry === undefined) {
    const pool = createThreadPool({ threads, setup, cacheBytes, resourceLimits, graceMs });
    return { render: (graph, settings) => pool.render(graph, settings), close: () => pool.close() };
  }
  if (setup !== undefined) {
    throw new LatentkitError("usage.invalid", "createGraphAgent: expected setup, or host and registry, received both.");
  }
  const cache = createCache({ size: cacheBytes });
  return {
    render: (graph, settings) => render(graph, { ...settings, host, registry, cache }),
    close: async () => {},
  };
}

/** Tells the run's stream what its graph does, and gathers the files. */
function createReporter(
  graph: Readonly<Record<string, unknown>>,
  { outputDir, folder }: { outputDir: string; folder: string },
  { emit, addFile }: AgentContext,
) {
  const files = new Map<string, ReportedFile>();
  const classOf = (id: string) => (graph[id] as { class_type?: unknown } | undefined)?.class_type ?? null;
  const report = (file: RenderedFile) => {
    const { path, filename, type } = file;
    // what a node says of its files is served to the reader: only from this run's folder
    if (files.has(path) || !path.startsWith(folder + sep)) return;
    const subfolder = relative(outputDir, dirname(path)).split(sep).join("/");
    const reported = { filename, subfolder, type, url: addFile({ path }).url };
    files.set(path, reported);
    emit(PICTURES.has(extname(filename).toLowerCase()) ? "image" : "file", reported);
  };
  /** Nodes of the run that are not done yet; those that a lazy branch leaves out stay. */
  let open = new Set<string>();
  let nodes = 0;
  const hear = (event: RunEvent) => {
    if (event.type === "run-start") {
      open = new Set(event.nodeIds);
      nodes = open.size;
    } else if (event.type === "cached") for (const id of event.nodeIds) open.delete(id);
    else if (event.type === "node-start")
      emit("node_start", { node: event.displayId, class_type: classOf(event.displayId) });
    else if (event.type === "progress") emit("progress", { value: event.value, max: event.max, node: event.nodeId });
    else if (event.type === "node-done") {
      const { displayId: node, ms } = event;
      open.delete(node);
      const done = nodes - open.size;
      emit("node_done", { node, class_type: classOf(node), ms: Math.round(ms * 10) / 10, done, nodes });
      for (const file of filesOf(event.ui ?? {}, folder)) report(file);
    } else if (event.type === "node-error") {
      const { nodeId: node, error } = event;
      emit("node_error", { node, class_type: classOf(node), message: error.message, code: error.code });
    } else if (event.type === "warning") emit("warning", { node: event.nodeId ?? null, message: event.message });
  };
  return {
    hear,
    get files(): readonly ReportedFile[] {
      return [...files.values()];
    },
  };
}

/** A thread that had to be ended could not take its temporary files away; the folder is this run's alone. */
async function removeUnfinished(folder: string): Promise<void> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return [];
      throw error;
    },
  );
  for (const entry of entries) {
    if (!entry.isFile() || !entry.name.startsWith(".") || !entry.name.endsWith(TEMPORARY_SUFFIX)) continue;
    await rm(join(entry.parentPath ?? entry.path, entry.name), { force: true });
  }
}
