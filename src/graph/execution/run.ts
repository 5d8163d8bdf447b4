import { inputError, LatentkitError } from "../../base/errors.js";
import { withDevice } from "../../tensor/device/device.js";
import type { RunResults } from "../disk-cache/disk-cache.js";
import type { Happening, NodeUi, RunStatus } from "../events.js";
import type { Entry } from "../memory/cache.js";
import type { RunMemory } from "../memory/run-memory.js";
import type { PreparedNode } from "../prepared.js";
import {
  type CallResult,
  callNode,
  checkLazy,
  type Expansion,
  expandedOutputs,
  expandNode,
  type Gathered,
  gather,
  mergeOutputs,
  missingSources,
  NOT_GATHERED,
  sourcesIn,
} from "./calls.js";
import { type ExecutionContext, RunningNode, refuseNetwork } from "./context.js";
import { Plan } from "./plan.js";
import { nodeError, outputValues, summarizeInputs } from "./reporting.js";

/** A node whose result was a graph: the nodes that replace it, and its own UI result. */
interface Expanded extends Expansion {
  readonly ui?: NodeUi;
  readonly started: number;
}

const NONE_NEEDED: ReadonlySet<string> = new Set();

/** One run of a graph: runs node after node of its plan until it is empty, one fails or the signal aborts. */
export class Run {
  /** UI results by node id. */
  readonly ui: Record<string, NodeUi> = {};
  /** Undefined until the run is over. */
  status: RunStatus | undefined;
  readonly #memory: RunMemory;
  readonly #expanded = new Map<string, Expanded>();
  /** Lazy inputs that nodes need, by node id. */
  readonly #needed = new Map<string, ReadonlySet<string>>();
  readonly #plan: Plan;
  /** The last node that a step took. */
  #current: string | undefined;
  readonly #isRoot: ReadonlySet<string>;
  readonly #hasResult = (id: string) => this.#memory.find(id) !== undefined;
  readonly #resultOf = (id: string) => this.#memory.find(id);
  readonly #typeOf = (id: string, slot: number) => this.#nodes.get(id)?.definition.outputs[slot]?.type;
  readonly #nodes: Map<string, PreparedNode>;
  readonly #roots: readonly string[];
  readonly #execution: ExecutionContext;
  readonly #emit: (happening: Happening) => void;
  readonly #stored: RunResults | undefined;

  /** `nodes`: all that the roots need. `emit` receives the events. `stored`: results on a disk. */
  constructor(
    nodes: Map<string, PreparedNode>,
    roots: readonly string[],
    execution: ExecutionContext,
    emit: (happening: Happening) => void,
    stored: RunResults | undefined,
  ) {
    this.#nodes = nodes;
    this.#roots = roots;
    this.#execution = execution;
    this.#emit = emit;
    this.#stored = stored;
    this.#isRoot = new Set(roots);
    this.#memory = execution.scope.memory;
    this.#plan = new Plan({
      sourcesOf: (id) => this.#eagerSources(id),
      isOutput: (id) => this.#isRoot.has(id) || nodes.get(id)!.definition.outputNode,
    });
    for (const id of roots) this.#plan.add(id);
  }

  /** Runs the next node. Never rejects; sets `status` when the run is over. */
  async step(): Promise<void> {
    const { signal } = this.#execution.scope;
    if (signal.aborted) return this.#interrupt(undefined);
    if (this.#plan.size === 0) {
      this.status = "success";
      return;
    }
    const id = this.#plan.take();
    this.#current = id;
    if (id === undefined) return this.#failDeadlocked();
    const node = this.#nodes.get(id)!;
    let gathered = NOT_GATHERED;
    try {
      const earlier = this.#memory.find(id);
      if (earlier !== undefined) return this.#finish(node, earlier, 0);
      const expanded = this.#expanded.get(id);
      if (expanded !== undefined) return this.#finishExpanded(node, expanded);
      if (this.#stored !== undefined && (await this.#takeStored(node, this.#stored))) return;
      this.#emit({ type: "node-start", nodeId: id, displayId: node.displayId });
      gathered = this.#gather(node);
      while (node.definition.checkLazy !== undefined) {
        const next = await this.#stage(node, gathered);
        if (next === "wait") return;
        if (next === "go") break;
        gathered = this.#gather(node);
      }
      if (this.#refuseEmpty(node, gathered)) return;
      await this.#run(node, gathered);
    } catch (error) {
      if (signal.aborted) this.#interrupt(id);
      else this.#fail(id, nodeError(error, node), gathered);
    }
  }

  /** Ends the run during a step: its node did not listen to the abort. */
  giveUp(): void {
    this.#interrupt(this.#current);
  }

  /** Values of the roots that have them. */
  outputs(): Record<string, unknown[]> {
    const done = this.#roots.filter((id) => this.#memory.get(id) !== undefined);
    return Object.fromEntries(done.map((id) => [id, outputValues(this.#nodes.get(id)!, this.#memory.get(id)!)]));
  }

  #eagerSources(id: string): string[] {
    this.#memory.revive(this.#nodes.get(id)!);
    if (this.#stored?.isExpected(id)) return [];
    const sources: string[] = [];
    for (const { spec, source } of this.#nodes.get(id)!.links) {
      if (!spec.lazy && !this.#hasResult(source)) sources.push(source);
    }
    return sources;
  }

  /** Whether the node need not run now: its result was on the disk, or was expected there and first needs its sources. */
  async #takeStored(node: PreparedNode, stored: RunResults): Promise<boolean> {
    const wasExpected = stored.isExpected(node.id);
    const entry = await stored.find(node.id);
    if (entry !== undefined) this.#finish(node, entry, 0);
    else if (wasExpected) {
      const sources = this.#eagerSources(node.id);
      await stored.expect(sources, this.#hasResult);
      for (const source of sources) this.#plan.link(source, node.id);
      this.#plan.back(node.id);
    }
    return entry !== undefined || wasExpected;
  }

  #gather(node: PreparedNode): Gathered {
    const needed = this.#needed.get(node.id) ?? NONE_NEEDED;
    return gather(node, this.#resultOf, this.#typeOf, this.#execution.checkOf(node), needed);
  }

  /** Checks which lazy inputs the node needs: it may "go", must "wait" for them, or check "again" with withheld ones. */
  async #stage(node: PreparedNode, gathered: Gathered): Promise<"go" | "wait" | "again"> {
    const needed = await checkLazy(node.definition, gathered);
    this.#needed.set(node.id, new Set([...(this.#needed.get(node.id) ?? []), ...needed]));
    const sources = missingSources(node, needed, gathered);
    if (sources.length === 0) return needed.some((input) => gathered.held.has(input)) ? "again" : "go";
    await this.#stored?.expect(sources, this.#hasResult);
    for (const source of sources) this.#plan.link(source, node.id);
    this.#plan.back(node.id);
    return "wait";
  }

  /** Whether an empty list keeps the node from running. Throws if a required input has no value for it. */
  #refuseEmpty(node: PreparedNode, gathered: Gathered): boolean {
    const { definition, id } = node;
    const input = gathered.empty;
    if (input === undefined) return false;
    if (gathered.calls > 0) {
      if (!this.#execution.isChecked || definition.inputs[input]!.optional) return false;
      const at = { nodeId: id, node: definition.key, input };
      throw inputError("input.missing", at, "a value, not an empty list", undefined);
    }
    this.#execution.warnings.add(node, `input "${input}": the list is empty; the node does not run.`);
    this.#finish(node, this.#kept(node, { outputs: definition.outputs.map(() => []), skipped: true }), 0);
    return true;
  }

  async #run(node: PreparedNode, gathered: Gathered): Promise<void> {
    const { definition, id } = node;
    const started = performance.now();
    const context = new RunningNode(node, this.#execution);
    try {
      const hidden = this.#execution.hiddenOf(node);
      const { device } = this.#execution.scope;
      const called = await withDevice(device, () => callNode(definition, gathered, hidden, context));
      for (const message of called.messages) this.#emit({ type: "blocked", nodeId: id, message });
      if (called.results.some(({ expand }) => expand !== undefined)) {
        return this.#expand(node, called.results, called.ui, started);
      }
      const entry = this.#kept(node, { outputs: mergeOutputs(definition, called.results), ui: called.ui });
      if (called.ran > 0) {
        const ms = performance.now() - started;
        if (this.#stored !== undefined) await this.#stored.store(node, entry, ms);
        return this.#finish(node, entry, ms);
      }
      if (called.messages.size === 0) this.#emit({ type: "blocked", nodeId: id });
      this.#store(node, entry);
    } finally {
      context.close();
    }
  }

  #expand(node: PreparedNode, results: readonly CallResult[], ui: NodeUi | undefined, started: number): void {
    const { isOffline, choiceContext, scope, surroundings } = this.#execution;
    const exists = (id: string) => this.#nodes.has(id);
    const context = { graph: scope.graph, registry: surroundings.registry, choiceContext, exists };
    const expansion = expandNode(node, results, context);
    if (isOffline) refuseNetwork(expansion.nodes, choiceContext.files);
    for (const inner of expansion.nodes) {
      this.#nodes.set(inner.id, inner);
      for (const { input, bend } of inner.bends) this.#execution.warnings.addBend(inner, input, () => bend);
      this.#memory.addReader(inner);
    }
    this.#expanded.set(node.id, { ...expansion, ui, started });
    for (const { id, definition } of expansion.nodes) if (definition.outputNode) this.#plan.link(id, node.id);
    for (const source of sourcesIn(expansion)) {
      this.#memory.addRead(source);
      this.#plan.link(source, node.id);
    }
    this.#plan.back(node.id);
  }

  #finishExpanded(node: PreparedNode, { outputs: slots, ui, started }: Expanded): void {
    const outputs = expandedOutputs(node, slots, (source) => this.#memory.find(source)!);
    this.#finish(node, this.#kept(node, { outputs, ui }), performance.now() - started);
  }

  #finish(node: PreparedNode, entry: Entry, ms: number): void {
    this.#store(node, entry);
    const { id, displayId } = node;
    const outputs = outputValues(node, entry);
    if (entry.ui === undefined) this.#emit({ type: "node-done", nodeId: id, displayId, outputs, ms });
    else {
      this.ui[id] = entry.ui;
      this.#emit({ type: "node-done", nodeId: id, displayId, outputs, ui: entry.ui, ms });
    }
  }

  #kept(node: PreparedNode, entry: Entry): Entry {
    return this.#execution.warnings.keep(node, entry, this.#sourcesOf(node));
  }

  #store(node: PreparedNode, entry: Entry): void {
    this.#execution.warnings.repeat(node, entry);
    const released = this.#memory.store(node, entry, this.#sourcesOf(node));
    this.#plan.done(node.id);
    for (const id of released) {
      this.#expanded.delete(id);
      this.#plan.forget(id);
    }
  }

  /** Sources of a node, those of its expansion included. */
  #sourcesOf({ id, links }: PreparedNode): string[] {
    const sources = links.map(({ source }) => source);
    const expanded = this.#expanded.get(id);
    return expanded === undefined ? sources : sources.concat(sourcesIn(expanded));
  }

  #interrupt(nodeId: string | undefined): void {
    this.status = "interrupted";
    this.#emit(nodeId === undefined ? { type: "interrupted" } : { type: "interrupted", nodeId });
  }

  #fail(nodeId: string, error: LatentkitError, { lists }: Pick<Gathered, "lists">): void {
    this.status = "failed";
    this.#emit({ type: "node-error", nodeId, error, inputs: summarizeInputs(lists) });
  }

  /** Only graphs that nodes return can close a cycle at this point. */
  #failDeadlocked(): void {
    const waiting = this.#plan.waiting();
    const nodeId = waiting[0]!;
    const message = `The graph has a cycle among the nodes ${waiting.slice(0, 10).join(", ")}.`;
    this.#fail(nodeId, new LatentkitError("graph.cycle", message, { nodeId }), { lists: {} });
  }
}
