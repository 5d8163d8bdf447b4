import { readdir, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { LatentkitError } from "../../base/errors.js";
import { COUNT, checkedLater, checkOptions, OBJECT, type OptionRules, rulesWithout } from "../../base/options.js";
import type { RunEvent } from "../../graph/events.js";
import { JOB_RULES, type Job, jobOf } from "../../graph/job.js";
import { createCache } from "../../graph/memory/cache.js";
import { SURROUNDINGS_RULES, type Surroundings } from "../../graph/surroundings.js";
import { type Validation, validateGraph } from "../../graph/validate.js";
import { MODEL_SETTINGS, type ModelSettings } from "../../host/checkpoint/settings.js";
import type { Host } from "../../host/host.js";
import { TEMPORARY_SUFFIX } from "../../io/files/write-file.js";
import { describeNode } from "../../nodes/describe.js";
import { refuseUnsendable } from "../../render/job.js";
import { withSmallPreview } from "../../render/plain.js";
import { renderJob } from "../../render/render.js";
import { type RunOutcome, resultOf } from "../../render/result.js";
import { apiGraph, GRAPH } from "../../render/source.js";
import { defaultHost, defaultRegistry, surroundingsOf } from "../../render/surroundings.js";
import { ModelThread } from "../../render/threads/model-thread.js";
import type { RunListener } from "../../render/threads/render-thread.js";
import { createThreadPool, type ThreadPoolOptions } from "../../render/threads/thread-pool.js";
import { chooseDevice } from "../../tensor/device/device.js";
import type { Agent, AgentGraphs, AgentRun, RunGraph } from "./agent.js";
import {
  type AskedRun,
  assetsOf,
  type GraphSources,
  NamedGraphs,
  namedRun,
  postedRun,
  readSources,
  runFolder,
} from "./agent-graphs.js";
import { fillsOf, fillWorkflow } from "./message.js";
import { createReporter } from "./run-reporter.js";

/** Options of `createGraphAgent`: those of a render but `set`, which messages fill, and options of the threads. */
export interface GraphAgentOptions
  extends Readonly<Omit<Job, "set" | "passing" | "output" | "partialExecutionTargets" | "validate" | "runId">>,
    Pick<ThreadPoolOptions, "threads" | "cacheBytes" | "resourceLimits" | "graceMs"> {
  /** A graph as `render` takes it; read once. Its placeholders are what messages fill. Absent: the first of `graphs`. */
  readonly graph?: string | object;
  /** Further graphs by the names that requests choose them by. */
  readonly graphs?: Readonly<Record<string, string | object>>;
  /** Models of the threads, which share one process for their networks; the preview host if absent. */
  readonly models?: ModelSettings;
  /** Live objects: with either, graphs run on the calling thread. For worker threads: `models` and `setup`. */
  readonly host?: Surroundings["host"];
  /** The nodes, as `host`; those of the package if absent. */
  readonly registry?: Surroundings["registry"];
  /** Each run writes in `runs/<run id>` below. */
  readonly outputDir: string;
}

const AGENT_RULES: OptionRules<GraphAgentOptions> = {
  ...rulesWithout(JOB_RULES, "set", "passing", "output", "partialExecutionTargets", "validate", "runId"),
  models: MODEL_SETTINGS,
  host: SURROUNDINGS_RULES.host,
  registry: SURROUNDINGS_RULES.registry,
  graph: GRAPH,
  graphs: OBJECT,
  threads: checkedLater("a whole number"),
  cacheBytes: ["a number of bytes", (value) => typeof value === "number" && value >= 0],
  resourceLimits: OBJECT,
  graceMs: COUNT,
};

/** An agent that renders a graph for each run. Close it to end its threads. */
export interface GraphAgent extends Agent {
  /** Throws usage.invalid for a message that `graphSchema(graph, { named: true })` does not allow. */
  check(message: string, graph?: RunGraph): void;
  readonly graphs: AgentGraphs;
  /** Reads other graphs in place of these, all or none; runs keep those that they were accepted with. Throws as the creation. */
  reload(sources: GraphSources): void;
  /** Interrupts what runs and ends the threads. */
  close(): Promise<void>;
}

interface Renderer {
  render(graph: string, job: Job, listener: RunListener): Promise<RunOutcome>;
  close(): Promise<void>;
}

/**
 * Creates an agent that renders a graph for each run, in worker threads. Emits node_start, progress, preview, node_done,
 * image (file for other files), warning and node_error; its response is the list of files as JSON. Throws if a graph cannot
 * be read or names an unknown class; a message that the graph's schema does not allow is refused, or fails its run.
 */
export function createGraphAgent(options: GraphAgentOptions): GraphAgent {
  checkOptions("createGraphAgent", options, AGENT_RULES, ["outputDir"]);
  const models = options.models && new ModelThread(options.models);
  return graphAgentWith(options, models, async () => models?.close());
}

/** `createGraphAgent` with checked options; models that are given outlive the agent, unless `closeModels` ends them. */
export function graphAgentWith(
  options: GraphAgentOptions,
  models: ModelThread | undefined,
  closeModels: () => Promise<void> = async () => {},
): GraphAgent {
  const { registry, classAliases } = options;
  const sources = readSources(options, { registry, classAliases });
  const { inputDir = sources.values().next().value!.inputDir, ...rest } = jobOf(options);
  const job: Job = { ...rest, inputDir: resolve(inputDir) };
  const context = { ...job, registry };
  const named = new NamedGraphs(sources, context);
  const outputDir = resolve(options.outputDir);
  chooseDevice(job.device);
  const renderer = createRenderer(job, options, models);

  const assetsDir = join(outputDir, "assets");
  const askedOf = (run: AgentRun): AskedRun | Promise<AskedRun> =>
    run.graph?.name === null
      ? postedRun(run.graph, run, { assetsDir, extraPnginfo: job.extraPnginfo })
      : namedRun(named.of(run.graph), run.message);

  const agent: Agent = async (run, context) => {
    const folder = runFolder(outputDir, run);
    const { text, prompt, isForComfy, warnings, job: ownJob } = await askedOf(run);
    const reporter = createReporter(prompt, { outputDir, folder, isForComfy }, context);
    const { signal } = context;
    const own: Job = { ...job, ...ownJob, outputDir: folder };
    for (const message of warnings) context.emit("warning", { node: null, message });
    const outcome = await renderer.render(text, own, { signal, onEvent: reporter.onEvent });
    if (outcome.status !== "success") await removeUnfinished(folder);
    const result = resultOf(outcome, signal, "The agent was closed.");
    if (result.status === "failed") throw result.error ?? new LatentkitError("node.failed", "The run failed.");
    return { response: JSON.stringify(reporter.files) };
  };
  const nodes = registry ?? defaultRegistry;
  const { host = models === undefined ? defaultHost : withoutPrompts(models.listing) } = options;
  const validate = async (posted: object, targets?: readonly string[]): Promise<Validation> => {
    const { graph, files } = await assetsOf(posted, assetsDir);
    // nodes of a setup module exist only in the threads
    if (job.setup !== undefined) return { ok: true, outputs: [], nodeErrors: {}, warnings: [] };
    await host.refresh?.();
    const { inputDir, allowNetwork, classAliases } = job;
    const partialExecutionTargets = targets && [...targets];
    const own = { inputDir, files, allowNetwork, classAliases, partialExecutionTargets };
    return validateGraph(graph, { registry: nodes, builtIns: defaultRegistry, host, ...own });
  };
  let turn: Promise<unknown> = Promise.resolve();
  const graphs: AgentGraphs = {
    get default() {
      return named.default;
    },
    get names() {
      return named.names;
    },
    find: (name) => named.find(name),
    schemaOf: (name) => named.schemaOf(name),
    assetsDir,
    describe: (key) => {
      const definition = nodes.get(key);
      return definition && describeNode(definition, { host, inputDir: job.inputDir });
    },
    classes: () => nodes.keys(),
    refresh: async () => (await host.refresh?.()) ?? true,
    models: (kind) => (kind === "checkpoints" ? host.checkpoints() : host.files?.(kind)),
    toApi: (graph) => apiGraph(graph, { registry, classAliases }),
    fill: (graph, values) => fillWorkflow(graph, values, { registry: nodes, classAliases }),
    // one after the other: each holds its assets
    validate: (graph, targets) => {
      const result = turn.then(() => validate(graph, targets));
      turn = result.catch(() => undefined);
      return result;
    },
  };
  return Object.assign(agent, {
    check(message: string, graph?: RunGraph) {
      if (graph?.name !== null) return void fillsOf(message, named.of(graph).parameters);
      throw new LatentkitError("usage.invalid", "Message: not allowed when the request brings its own graph.");
    },
    graphs,
    reload: (sources: GraphSources) => named.replace(readSources(sources, context)),
    async close() {
      await renderer.close();
      await closeModels();
    },
  });
}

/** A host that leaves prompts to the threads that render: a long one takes seconds. */
const withoutPrompts = (host: Host): Host => Object.create(host, { promptWarnings: { value: undefined } });

function createRenderer(job: Job, options: GraphAgentOptions, models: ModelThread | undefined): Renderer {
  const { host, registry, threads, cacheBytes, resourceLimits, graceMs } = options;
  const { setup, cacheDir } = job;
  if (host === undefined && registry === undefined) {
    refuseUnsendable(job);
    return createThreadPool({ threads, setup, models, cacheBytes, cacheDir, resourceLimits, graceMs });
  }
  if (models !== undefined) {
    throw new LatentkitError(
      "usage.invalid",
      "createGraphAgent: expected models, or host and registry, received both.",
    );
  }
  if (setup !== undefined) {
    throw new LatentkitError("usage.invalid", "createGraphAgent: expected setup, or host and registry, received both.");
  }
  const surroundings = surroundingsOf(job, { host, registry, cache: createCache({ size: cacheBytes }) });
  return {
    render(graph, job, { signal, onEvent }) {
      const listener = { signal, onEvent: (event: RunEvent) => onEvent?.(withSmallPreview(event)) };
      return renderJob(graph, job, { ...surroundings, ...listener });
    },
    close: async () => {},
  };
}

/** Removes temporary files that a terminated thread left behind; only this run uses the folder. */
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
