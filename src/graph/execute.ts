import { randomUUID } from "node:crypto";
import { GRACE_MS, interruption, orGivenUp, Span, YieldTimer } from "../base/abort.js";
import { LatentkitError } from "../base/errors.js";
import { refuseReservedKeys } from "../io/files/save-images.js";
import { chooseDevice } from "../tensor/device/device.js";
import { RunResults } from "./disk-cache/disk-cache.js";
import type { Happening, RunEvent } from "./events.js";
import { ExecutionContext } from "./execution/context.js";
import { prepareRun, signAll } from "./execution/prepare-run.js";
import { Run } from "./execution/run.js";
import type { Job } from "./job.js";
import { RunMemory } from "./memory/run-memory.js";
import { DiskSigner, Signer } from "./memory/signature.js";
import { parseGraph } from "./parse.js";
import type { Surroundings } from "./surroundings.js";
import { withoutUnknown } from "./topology.js";
import { cycleError } from "./validation/graph-error.js";

/**
 * Runs a graph (an object or JSON text) and yields its events. Throws a LatentkitError at the first step if the
 * graph is invalid; a node that fails is reported as `node-error`, and `run-done` is always the last event. Then it throws
 * the reason of a signal that has interrupted the run; a node that does not listen to it is abandoned after 2 s. Ending the
 * iteration early aborts the run.
 */
export async function* executeGraph(
  prompt: unknown,
  job: Job,
  surroundings: Surroundings,
): AsyncGenerator<RunEvent, void, void> {
  const queue = new RunEvents();
  const emit = createEmitter(surroundings, (event) => queue.add(event));
  const { signal } = surroundings;
  const span = new Span(signal);
  try {
    const begun = await orGivenUp(begin(prompt, job, surroundings, span, emit), signal, GRACE_MS);
    yield* queue.take();
    if (begun === undefined) return;
    for await (const events of queue.follow(begun.run, signal)) yield* events;
    await end(begun, emit);
    yield* queue.take();
    if (begun.run.status === "interrupted") throw interruption(signal, "The run was interrupted.");
  } finally {
    span.end();
  }
}

/** Runs a graph as `executeGraph` does, without a consumer to wait for: only `onEvent` receives the events. */
export async function runGraph(prompt: unknown, job: Job, surroundings: Surroundings): Promise<void> {
  const emit = createEmitter(surroundings, () => {});
  const span = new Span(surroundings.signal);
  try {
    const begun = await begin(prompt, job, surroundings, span, emit);
    if (begun === undefined) return;
    const timer = new YieldTimer();
    while (begun.run.status === undefined) {
      await begun.run.step();
      if (timer.isDue) await timer.yield();
    }
    await end(begun, emit);
  } finally {
    span.end();
  }
}

type Emit = (happening: Happening) => void;

function createEmitter({ clock, onEvent }: Surroundings, listener: (event: RunEvent) => void): Emit {
  let isInterrupted = false;
  let isOver = false;
  let thrown: { readonly error: unknown } | undefined;
  return (happening) => {
    // not to be taken for a failure of the node that reported
    if (thrown !== undefined) throw thrown.error;
    const { type } = happening;
    // reports of an abandoned node come too late
    if (isOver || (isInterrupted && type !== "run-done")) return;
    isInterrupted = type === "interrupted";
    isOver = type === "run-done";
    const at = clock === undefined ? Date.now() : clock().getTime();
    const event: RunEvent = Object.assign(happening, { at });
    try {
      onEvent?.(event);
    } catch (error) {
      thrown = { error };
      throw error;
    }
    listener(event);
  };
}

interface Begun {
  readonly run: Run;
  readonly diskResults: RunResults | undefined;
}

/** Does everything before the first node; undefined if a cycle ends the run at once. */
async function begin(
  prompt: unknown,
  job: Job,
  surroundings: Surroundings,
  span: Span,
  emit: Emit,
): Promise<Begun | undefined> {
  refuseReservedKeys(job.extraPnginfo);
  const graph = withoutUnknown(parseGraph(prompt, job), surroundings.registry, job.targets);
  const device = chooseDevice(job.device);
  const prepared = prepareRun(graph, job, surroundings);
  const { nodes, roots, leftOut, warnings, cycles } = prepared;
  const { diskCache } = surroundings;
  const memory = new RunMemory(surroundings, nodes, roots, prepared.order);
  // a run that retains nothing leaves nothing behind
  const signal = (memory.isContained ? surroundings.signal : undefined) ?? span.signal;
  const execution = new ExecutionContext(job, surroundings, { graph, memory, signal, device }, emit);
  const nodeIds = graph.ids.filter((id) => nodes.has(id));
  const runId = job.runId ?? randomUUID();
  emit({ type: "run-start", runId, nodeIds, ...(leftOut.length > 0 && { leftOut }) });
  execution.warnings.begin(warnings);
  if (cycles.length > 0) {
    emit(cycleHappening(cycles[0]!));
    emit({ type: "run-done", status: "failed", outputs: {}, ui: {} });
    return undefined;
  }
  const { choiceContext, isChecked } = execution;
  const diskSigner = diskCache && new DiskSigner(diskCache.packageVersion, surroundings, isChecked);
  const diskResults = diskCache && diskSigner && new RunResults(diskCache, diskSigner, nodes, choiceContext);
  const onSigned = diskSigner && ((...signed: Parameters<DiskSigner["sign"]>) => diskSigner.sign(...signed));
  const signatures = await signAll(prepared, new Signer(memory, job, surroundings), choiceContext, onSigned);
  memory.begin(signatures, graph.ids);
  await diskResults?.expect(roots, (id) => memory.isCached(id));
  const cached = graph.ids.filter((id) => memory.isCached(id) || diskResults?.isExpected(id));
  emit({ type: "cached", nodeIds: cached });
  return { run: new Run(nodes, roots, execution, emit, diskResults), diskResults };
}

async function end({ run, diskResults }: Begun, emit: Emit): Promise<void> {
  const warning = run.status === "interrupted" ? undefined : await diskResults?.written();
  if (warning !== undefined) emit({ type: "warning", message: warning });
  emit({ type: "run-done", status: run.status!, outputs: run.outputs(), ui: run.ui });
}

function cycleHappening(cycle: readonly string[]): Happening {
  const { sentence } = cycleError(cycle);
  const error = new LatentkitError("graph.cycle", sentence, { nodeId: cycle[0] });
  return { type: "node-error", nodeId: cycle[0]!, error, inputs: {} };
}

/** Events that happen while a node runs, until the consumer takes them. */
class RunEvents {
  #pending: RunEvent[] = [];
  #wake = () => {};

  add(event: RunEvent): void {
    this.#pending.push(event);
    this.#wake();
  }

  /** Takes all pending events. */
  take(): readonly RunEvent[] {
    const events = this.#pending;
    this.#pending = [];
    return events;
  }

  /**
   * Steps through the run and yields its events, several at a time, even while a node still runs. A node that does not
   * listen to an abort is abandoned after the grace period.
   */
  async *follow(run: Run, signal: AbortSignal | undefined): AsyncGenerator<readonly RunEvent[], void, void> {
    const timer = new YieldTimer();
    while (run.status === undefined) {
      let isSettled = false;
      let failure: { error: unknown } | undefined;
      const settle = () => {
        isSettled = true;
        this.#wake();
      };
      orGivenUp(run.step(), signal, GRACE_MS)
        .catch((error: unknown) => {
          if (!signal?.aborted || error !== signal.reason) throw error;
          run.giveUp();
        })
        .then(settle, (error: unknown) => {
          failure = { error };
          settle();
        });
      while (!isSettled || this.#pending.length > 0) {
        if (this.#pending.length === 0) await this.#nextEvent();
        const events = this.take();
        if (events.length > 0) yield events;
      }
      if (failure !== undefined) throw failure.error;
      if (timer.isDue) await timer.yield();
    }
  }

  #nextEvent(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}
