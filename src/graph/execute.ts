import { randomUUID } from "node:crypto";
import { Span } from "../abort.js";
import { LatentkitError } from "../errors.js";
import type { Host } from "../host/types.js";
import type { OutputHandling } from "../io/output-files.js";
import { refuseReservedKeys } from "../io/save-images.js";
import type { NodeConfig } from "../nodes/define.js";
import type { Registry } from "../nodes/registry.js";
import { chooseDevice, type DeviceChoice } from "../tensor/device/choice.js";
import type { DiskCache } from "./disk-cache/disk-cache.js";
import { RunResults } from "./disk-cache/run-results.js";
import { DiskSigner } from "./disk-cache/signer.js";
import type { Happening, RunEvent } from "./events.js";
import { EventQueue } from "./execution/event-queue.js";
import { refusedFetch, withoutKeys } from "./execution/offline.js";
import { prepareRun, signAll } from "./execution/prepare-run.js";
import { Run } from "./execution/run.js";
import { RunSetting } from "./execution/setting.js";
import { YieldTimer } from "./execution/yield-timer.js";
import { type MemoryFacts, RunMemory } from "./memory/run-memory.js";
import { Signer } from "./memory/signature.js";
import { parseGraph } from "./parse.js";
import type { ValidateOptions } from "./validate.js";
import { cycleError } from "./validation/graph-error.js";

export interface ExecuteOptions extends Omit<ValidateOptions, "host">, MemoryFacts {
  readonly host?: Host;
  /** false: the graph was validated before; values are taken as they are. */
  readonly validate?: boolean;
  /** false: an output that cannot be computed refuses the graph; true where absent: it is left out, with a warning. */
  readonly partial?: boolean;
  /** Shared with other processes; asked for what `cache` does not hold. */
  readonly diskCache?: DiskCache;
  /** The package's own nodes: the disk cache keeps results of these, and of others that have a `cacheVersion`. */
  readonly builtIns?: Registry;
  /** Nodes that write files do so in every run, whatever the cache holds; false where absent. */
  readonly rewritesFiles?: boolean;
  /** Absolute. */
  readonly outputDir?: string;
  readonly extraPnginfo?: unknown;
  /** What nodes see as the graph, where it is not the one that runs. */
  readonly metadataPrompt?: unknown;
  /** Nodes do not see the graph. */
  readonly hidePrompt?: boolean;
  readonly clock?: () => Date;
  readonly fetch?: typeof fetch;
  readonly config?: NodeConfig;
  /** Where tensors are computed: "auto", "cpu" or "cuda:N"; see the README. LATENTKIT_DEVICE where absent, else auto. */
  readonly device?: DeviceChoice;
  /** Names and receipts of saved images. */
  readonly output?: OutputHandling;
  readonly signal?: AbortSignal;
  /** A random one where absent. */
  readonly runId?: string;
  /** Hears each event at once, before a node that never lets go of the thread begins. Must not throw. */
  readonly onEvent?: (event: RunEvent) => void;
}

/**
 * Runs a graph (an object or JSON text) and tells what happens. Throws a LatentkitError at the first step where the
 * graph is invalid; a node that fails is told as `node-error`, and `run-done` is always the last event. Ending the
 * iteration early aborts the run.
 */
export async function* executeGraph(prompt: unknown, options: ExecuteOptions): AsyncGenerator<RunEvent, void, void> {
  const queue = new EventQueue();
  const tell = teller(options, (event) => queue.add(event));
  const span = new Span(options.signal);
  try {
    const begun = await begin(prompt, options, span, tell);
    yield* queue.take();
    if (begun === undefined) return;
    for await (const events of queue.follow(begun.run)) yield* events;
    await end(begun, tell);
    yield* queue.take();
  } finally {
    span.end();
  }
}

/** The same in one go: `options.onEvent` alone hears what happens. Rejects where the graph is invalid. */
export async function runGraph(prompt: unknown, options: ExecuteOptions): Promise<void> {
  const tell = teller(options, () => {});
  const span = new Span(options.signal);
  try {
    const begun = await begin(prompt, options, span, tell);
    if (begun === undefined) return;
    const timer = new YieldTimer();
    while (begun.run.status === undefined) {
      await begun.run.step();
      if (timer.isDue) await timer.yield();
    }
    await end(begun, tell);
  } finally {
    span.end();
  }
}

type Tell = (happening: Happening) => void;

function teller({ clock, onEvent }: ExecuteOptions, hear: (event: RunEvent) => void): Tell {
  return (happening) => {
    const at = clock === undefined ? Date.now() : clock().getTime();
    const event: RunEvent = Object.assign(happening, { at });
    onEvent?.(event);
    hear(event);
  };
}

interface Begun {
  readonly run: Run;
  readonly kept: RunResults | undefined;
}

/** All that comes before the first node; undefined where a cycle ends the run at once. */
async function begin(prompt: unknown, options: ExecuteOptions, span: Span, tell: Tell): Promise<Begun | undefined> {
  refuseReservedKeys(options.extraPnginfo);
  const graph = parseGraph(prompt, options);
  const device = chooseDevice(options.device);
  const prepared = prepareRun(graph, options);
  const { nodes, roots, leftOut, warnings, cycles } = prepared;
  const memory = new RunMemory(options, nodes, roots, prepared.order);
  const isOffline = options.allowNetwork === false;
  const setting = new RunSetting(
    {
      graph,
      registry: options.registry,
      memory,
      // what retains nothing leaves nothing behind
      signal: (memory.isContained ? options.signal : undefined) ?? span.signal,
      isChecked: options.validate !== false,
      host: options.host,
      outputDir: options.outputDir,
      inputDir: options.inputDir,
      clock: options.clock ?? (() => new Date()),
      isOffline,
      fetch: isOffline ? refusedFetch : (options.fetch ?? globalThis.fetch),
      config: isOffline ? withoutKeys(options.config ?? {}) : (options.config ?? {}),
      output: options.output,
      device,
      prompt: options.hidePrompt === true ? undefined : (options.metadataPrompt ?? graph.prompt),
      extraPnginfo: options.extraPnginfo,
    },
    tell,
  );
  const nodeIds = graph.ids.filter((id) => nodes.has(id));
  const runId = options.runId ?? randomUUID();
  tell({ type: "run-start", runId, nodeIds, ...(leftOut.length > 0 && { leftOut }) });
  for (const warning of warnings) tell({ type: "warning", ...warning });
  if (cycles.length > 0) {
    tell(cycleHappening(cycles[0]!));
    tell({ type: "run-done", status: "failed", outputs: {}, ui: {} });
    return undefined;
  }
  const { diskCache } = options;
  const signer = diskCache && new DiskSigner(diskCache.packageVersion, options);
  const kept = diskCache && signer && new RunResults(diskCache, signer, nodes, options);
  const hear = signer && ((...signed: Parameters<DiskSigner["sign"]>) => signer.sign(...signed));
  const signatures = await signAll(prepared, new Signer(memory, options), options, hear);
  memory.begin(signatures, graph.ids);
  await kept?.expect(roots, (id) => memory.isCached(id));
  const cached = graph.ids.filter((id) => memory.isCached(id) || kept?.isExpected(id));
  tell({ type: "cached", nodeIds: cached });
  return { run: new Run(nodes, roots, setting, tell, kept), kept };
}

async function end({ run, kept }: Begun, tell: Tell): Promise<void> {
  const warning = run.status === "interrupted" ? undefined : await kept?.written();
  if (warning !== undefined) tell({ type: "warning", message: warning });
  tell({ type: "run-done", status: run.status!, outputs: run.outputs(), ui: run.ui });
}

function cycleHappening(cycle: readonly string[]): Happening {
  const { sentence } = cycleError(cycle);
  const error = new LatentkitError("graph.cycle", sentence, { nodeId: cycle[0] });
  return { type: "node-error", nodeId: cycle[0]!, error, inputs: {} };
}
