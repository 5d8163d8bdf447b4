import { LatentkitError } from "../../base/errors.js";
import type { NodeDefinition } from "../../nodes/define.js";
import type { ChoiceContext } from "../../nodes/inputs.js";
import { checkSocket } from "../../nodes/sockets.js";
import type { Entry } from "../memory/cache.js";
import { readChange } from "../memory/signature.js";
import type { PreparedNode } from "../prepared.js";
import type { DiskCache } from "./disk-cache.js";
import type { Outputs } from "./entry-format.js";
import type { DiskSigner } from "./signer.js";

/** Results of one run in a disk cache: those that it reads, and those that it writes. */
export class RunResults {
  private readonly expected = new Set<string>();
  private readonly checked = new Set<string>();
  private readonly missed = new Set<string>();

  constructor(
    private readonly disk: DiskCache,
    private readonly signer: DiskSigner,
    private readonly nodes: ReadonlyMap<string, PreparedNode>,
    private readonly choiceContext: ChoiceContext,
  ) {}

  /** Whether the node's result was on the disk when it was checked, so that its sources need not be computed. */
  isExpected(id: string): boolean {
    return this.expected.has(id);
  }

  /**
   * Checks for results of these nodes and, from those that have none, of their sources, lazy links aside. `hasResult`:
   * the run has the node's result already.
   */
  async expect(ids: Iterable<string>, hasResult: (id: string) => boolean): Promise<void> {
    let level = [...new Set(ids)];
    while (level.length > 0) {
      const fresh = level.filter((id) => !this.checked.has(id) && !hasResult(id));
      for (const id of fresh) this.checked.add(id);
      const isStored = await Promise.all(fresh.map((id) => this.has(id)));
      const sources = new Set<string>();
      for (const [i, id] of fresh.entries()) {
        if (isStored[i]) this.expected.add(id);
        else for (const { spec, source } of this.nodes.get(id)!.links) if (!spec.lazy) sources.add(source);
      }
      level = [...sources];
    }
  }

  /** Reads the node's result; one that is not on the disk is expected no longer. */
  async find(id: string): Promise<Entry | undefined> {
    const signature = this.missed.has(id) ? undefined : this.signer.storable(id);
    if (signature === undefined) return undefined;
    const { definition } = this.nodes.get(id)!;
    const outputs = await this.disk.read(signature, (values) => fits(definition, values));
    if (outputs !== undefined) return { outputs };
    this.missed.add(id);
    this.expected.delete(id);
    return undefined;
  }

  /**
   * Begins to write the result of a node that ran for `ms`, unless it has more than outputs: one with warnings is computed
   * again, so that every run warns.
   */
  async store(node: PreparedNode, { outputs, ui, skipped, warnings }: Entry, ms: number): Promise<void> {
    const { id, definition } = node;
    // a file that the node read may have changed since it was signed
    if (definition.isChanged !== undefined) this.signer.confirm(id, await readChange(node, this.choiceContext));
    const signature = this.signer.storable(id);
    if (
      signature === undefined ||
      ui !== undefined ||
      skipped === true ||
      warnings !== undefined ||
      !fits(definition, outputs)
    )
      return;
    this.disk.write(signature, outputs, ms);
  }

  /** Waits until all is written. Returns the reason why it could not be, once. */
  async written(): Promise<string | undefined> {
    await this.disk.written();
    return this.disk.takeWarning();
  }

  private async has(id: string): Promise<boolean> {
    const signature = this.signer.storable(id);
    return signature !== undefined && (await this.disk.has(signature));
  }
}

const SCALARS: Readonly<Record<string, readonly string[]>> = {
  INT: ["number", "bigint"],
  FLOAT: ["number"],
  STRING: ["string"],
  BOOLEAN: ["boolean"],
};

/** Whether the values are of the types that the node declares. */
function fits({ key, outputs: specs }: NodeDefinition, outputs: Outputs): boolean {
  if (outputs.length !== specs.length) return false;
  return specs.every(({ name, type, list }, slot) => {
    const values = outputs[slot]!;
    if (!list && values.length === 0) return false;
    return values.every((value) => isOf(type, value, { node: key, input: name }));
  });
}

function isOf(type: string, value: unknown, at: { node: string; input: string }): boolean {
  if (Object.hasOwn(SCALARS, type)) return SCALARS[type]!.includes(typeof value);
  try {
    checkSocket(type, value, at);
    return true;
  } catch (error) {
    if (error instanceof LatentkitError) return false;
    throw error;
  }
}
