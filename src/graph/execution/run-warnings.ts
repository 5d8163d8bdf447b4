import { atNode } from "../../base/errors.js";
import type { Happening } from "../events.js";
import type { Entry, KeptWarning } from "../memory/cache.js";
import type { RunMemory } from "../memory/run-memory.js";
import type { PreparedNode } from "../prepared.js";
import { MAX_WARNINGS } from "../validate.js";

type NodeOfWarning = Pick<PreparedNode, "id" | "displayId" | "definition">;

/** Warnings of nodes of one run. They stay with results, so that a run that takes these from a cache warns as well. */
export class RunWarnings {
  /** Whole sentences. */
  private readonly reported = new Set<string>();
  private left = MAX_WARNINGS;
  /** Inputs whose bent values have been reported. */
  private readonly bent = new Set<string>();
  /** Warnings of nodes that have no result yet. */
  private readonly own = new Map<string, KeptWarning[]>();

  constructor(
    private readonly memory: RunMemory,
    private readonly emit: (happening: Happening) => void,
  ) {}

  /** Reports what the validation of the graph has found. */
  begin(warnings: readonly { readonly nodeId?: string; readonly message: string }[]): void {
    for (const warning of warnings) {
      this.reported.add(warning.message);
      this.emit({ type: "warning", ...warning });
    }
  }

  /** Reports a sentence about a node, once. Beyond a bound the run is silent about further ones. */
  add({ id, displayId, definition }: NodeOfWarning, message: string): void {
    const signature = this.memory.signatureOf(id);
    const warning: KeptWarning = { nodeId: displayId, node: definition.key, signature, message };
    if (!this.report(warning)) return;
    const own = this.own.get(id);
    if (own === undefined) this.own.set(id, [warning]);
    else own.push(warning);
  }

  /** Reports that the value of an input is bent, once for each input: a list may have many. */
  addBend(node: NodeOfWarning, input: string, bend: () => string | undefined): void {
    const key = `${node.id}\n${input}`;
    const words = this.bent.has(key) ? undefined : bend();
    if (words === undefined) return;
    this.bent.add(key);
    this.add(node, `input "${input}": ${words}.`);
  }

  /** The result of a node with its warnings, and those of the results that it was computed from. */
  keep({ id }: NodeOfWarning, entry: Entry, sources: Iterable<string>): Entry {
    const kept = new Map<string, KeptWarning>();
    const add = (warning: KeptWarning) => {
      if (kept.size < MAX_WARNINGS) kept.set(keyOf(warning), warning);
    };
    for (const warning of this.own.get(id) ?? []) add(warning);
    for (const source of sources) {
      for (const warning of this.memory.get(source)?.warnings ?? []) add(this.ofThisRun(warning));
    }
    this.own.delete(id);
    return kept.size === 0 ? entry : { ...entry, warnings: [...kept.values()] };
  }

  /** Reports the warnings of a result that the run has taken from a cache or from an equal node. */
  repeat({ id, displayId }: NodeOfWarning, { warnings = [] }: Entry): void {
    const signature = this.memory.signatureOf(id);
    for (const warning of warnings) {
      const isOwn = signature !== undefined && warning.signature === signature;
      this.report(isOwn ? { ...warning, nodeId: displayId } : this.ofThisRun(warning));
    }
  }

  /** The warning with the id that its node has in this run. */
  private ofThisRun(warning: KeptWarning): KeptWarning {
    const nodeId = this.memory.nodeOf(warning.signature, warning.nodeId);
    return nodeId === warning.nodeId ? warning : { ...warning, nodeId };
  }

  private report(warning: KeptWarning): boolean {
    const { nodeId, node } = warning;
    const message = atNode({ nodeId, node }, warning.message);
    if (this.reported.has(message) || this.left === 0) return false;
    this.left--;
    this.reported.add(message);
    this.emit({ type: "warning", nodeId, message });
    return true;
  }
}

const keyOf = ({ nodeId, message }: KeptWarning): string => `${nodeId}\n${message}`;
