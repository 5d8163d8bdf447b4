import { atNode, describe, LatentkitError, messageOf, nodeName } from "../../base/errors.js";
import { plain } from "../../nodes/values.js";
import type { Happening } from "../events.js";
import type { Entry, KeptWarning } from "../memory/cache.js";
import type { RunMemory } from "../memory/run-memory.js";
import type { PreparedNode } from "../prepared.js";
import { MAX_WARNINGS } from "../validate.js";

type NodeOfWarning = Pick<PreparedNode, "id" | "displayId" | "definition">;

/** Warnings of one run's nodes. They stay with results, so that a run that takes these from a cache warns as well. */
export class RunWarnings {
  /** Whole sentences. */
  readonly #reported = new Set<string>();
  #left = MAX_WARNINGS;
  /** Inputs whose bent values have been reported. */
  readonly #bent = new Set<string>();
  /** Warnings of nodes that have no result yet. */
  readonly #own = new Map<string, KeptWarning[]>();
  readonly #memory: RunMemory;
  readonly #emit: (happening: Happening) => void;

  constructor(memory: RunMemory, emit: (happening: Happening) => void) {
    this.#memory = memory;
    this.#emit = emit;
  }

  /** Reports the warnings of the graph's validation. */
  begin(warnings: readonly { readonly nodeId?: string; readonly message: string }[]): void {
    for (const warning of warnings) {
      this.#reported.add(warning.message);
      this.#emit({ type: "warning", ...warning });
    }
  }

  /** Reports a sentence about a node, once. Further ones beyond a bound are dropped. */
  add({ id, displayId, definition }: NodeOfWarning, message: string): void {
    const signature = this.#memory.signatureOf(id);
    const warning: KeptWarning = { nodeId: displayId, node: definition.key, signature, message };
    if (!this.#report(warning)) return;
    const own = this.#own.get(id);
    if (own === undefined) this.#own.set(id, [warning]);
    else own.push(warning);
  }

  /** Reports that the value of an input is bent, once for each input: a list may have many. */
  addBend(node: NodeOfWarning, input: string, bend: () => string | undefined): void {
    const key = `${node.id}\n${input}`;
    const words = this.#bent.has(key) ? undefined : bend();
    if (words === undefined) return;
    this.#bent.add(key);
    this.add(node, `input "${input}": ${words}.`);
  }

  /** The result of a node with its warnings, and those of the results that it was computed from. */
  keep({ id }: NodeOfWarning, entry: Entry, sources: Iterable<string>): Entry {
    const kept = new Map<string, KeptWarning>();
    const add = (warning: KeptWarning) => {
      if (kept.size < MAX_WARNINGS) kept.set(keyOf(warning), warning);
    };
    for (const warning of this.#own.get(id) ?? []) add(warning);
    for (const source of sources) {
      for (const warning of this.#memory.get(source)?.warnings ?? []) add(this.#ofThisRun(warning));
    }
    this.#own.delete(id);
    return kept.size === 0 ? entry : { ...entry, warnings: [...kept.values()] };
  }

  /** Reports the warnings of a result that the run has taken from a cache or from an equal node. */
  repeat({ id, displayId }: NodeOfWarning, { warnings = [] }: Entry): void {
    const signature = this.#memory.signatureOf(id);
    for (const warning of warnings) {
      const isOwn = signature !== undefined && warning.signature === signature;
      this.#report(isOwn ? { ...warning, nodeId: displayId } : this.#ofThisRun(warning));
    }
  }

  /** The warning with the id that its node has in this run. */
  #ofThisRun(warning: KeptWarning): KeptWarning {
    const nodeId = this.#memory.nodeOf(warning.signature, warning.nodeId);
    return nodeId === warning.nodeId ? warning : { ...warning, nodeId };
  }

  #report(warning: KeptWarning): boolean {
    const { nodeId, node } = warning;
    const message = atNode({ nodeId, node }, warning.message);
    if (this.#reported.has(message) || this.#left === 0) return false;
    this.#left--;
    this.#reported.add(message);
    this.#emit({ type: "warning", nodeId, message });
    return true;
  }
}

const keyOf = ({ nodeId, message }: KeptWarning): string => `${nodeId}\n${message}`;

/** Outputs for events and results: the value of an output that has one, the list of values of any other. */
export function outputValues({ definition }: PreparedNode, { outputs }: Entry): unknown[] {
  return outputs.map((values, slot) => {
    const { type, list } = definition.outputs[slot]!;
    const value = values.length === 1 && !list ? values[0] : [...values];
    return type === "*" ? plain(value) : value;
  });
}

const MAX_LISTED = 16;

/** Inputs for an error event: scalars unchanged, other values in words, long lists cut. */
export function summarizeInputs(lists: Readonly<Record<string, readonly unknown[]>>): Record<string, unknown[]> {
  const summarize = (value: unknown): unknown =>
    value === null || typeof value === "number" || typeof value === "boolean" || typeof value === "bigint"
      ? value
      : typeof value === "string" && value.length <= 80
        ? value
        : value === undefined
          ? null
          : describe(value);
  return Object.fromEntries(
    Object.entries(lists).map(([input, list]) => [input, list.slice(0, MAX_LISTED).map(summarize)]),
  );
}

/** Makes a node's failure a LatentkitError that names the node. */
export function nodeError(error: unknown, { id, definition }: PreparedNode): LatentkitError {
  const at = { nodeId: id, node: definition.key };
  if (!(error instanceof LatentkitError)) {
    return new LatentkitError("node.failed", `${nodeName(at)}: ${messageOf(error)}`, at, { cause: error });
  }
  if (error.details.nodeId !== undefined) return error;
  // a node may have named itself, with a comma or a colon
  const { key } = definition;
  const isNamed = [`${key}, `, `${key}: `].some((name) => error.message.startsWith(name));
  const rest = isNamed ? error.message.slice(key.length + 2) : error.message;
  return new LatentkitError(error.code, atNode(at, rest), { ...error.details, ...at }, { cause: error });
}
