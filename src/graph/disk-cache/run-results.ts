import { LatentkitError } from "../../errors.js";
import type { NodeDefinition } from "../../nodes/define.js";
import { checkSocket } from "../../nodes/sockets.js";
import type { Entry } from "../memory/cache.js";
import { askChange, type SignatureScope } from "../memory/signature.js";
import type { PreparedNode } from "../prepared.js";
import type { DiskCache } from "./disk-cache.js";
import type { Outputs } from "./entry-format.js";
import type { DiskSigner } from "./signer.js";

/** What one run takes from a disk cache and leaves there. */
export class RunResults {
  private readonly expected = new Set<string>();
  private readonly looked = new Set<string>();
  private readonly missed = new Set<string>();

  constructor(
    private readonly disk: DiskCache,
    private readonly signer: DiskSigner,
    private readonly nodes: ReadonlyMap<string, PreparedNode>,
    private readonly place: SignatureScope,
  ) {}

  /** Whether the node's result was there when it was looked for: what it links to need not be computed for it. */
  isExpected(id: string): boolean {
    return this.expected.has(id);
  }

  /**
   * Looks for the results of these nodes and, from those that have none, of what they link to, lazy links aside.
   * `isKnown`: the run has the node's result already.
   */
  async expect(ids: Iterable<string>, isKnown: (id: string) => boolean): Promise<void> {
    let level = [...new Set(ids)];
    while (level.length > 0) {
      const fresh = level.filter((id) => !this.looked.has(id) && !isKnown(id));
      for (const id of fresh) this.looked.add(id);
      const found = await Promise.all(fresh.map((id) => this.has(id)));
      const sources = new Set<string>();
      for (const [i, id] of fresh.entries()) {
        if (found[i]) this.expected.add(id);
        else for (const { spec, source } of this.nodes.get(id)!.links) if (!spec.lazy) sources.add(source);
      }
      level = [...sources];
    }
  }

  /** The node's result, if it is on the disk; where not, it is expected no longer. */
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

  /** A node ran for `ms`. Begins to write its result, unless it has more to say than its outputs. */
  async keep(node: PreparedNode, { outputs, ui, skipped }: Entry, ms: number): Promise<void> {
    const { id, definition } = node;
    // what the node read may have changed since its signature was made
    if (definition.isChanged !== undefined) this.signer.confirm(id, await askChange(node, this.place));
    const signature = this.signer.storable(id);
    if (signature === undefined || ui !== undefined || skipped === true || !fits(definition, outputs)) return;
    this.disk.write(signature, outputs, ms);
  }

  /** Waits until all is written. Answers why it could not be, once. */
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
