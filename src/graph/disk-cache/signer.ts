import { createHash } from "node:crypto";
import type { Host } from "../../host/types.js";
import type { NodeDefinition } from "../../nodes/define.js";
import type { Registry } from "../../nodes/registry.js";
import type { Change } from "../memory/signature.js";
import { type OpaqueKey, valueKey } from "../memory/value-key.js";
import type { PreparedNode } from "../prepared.js";

/** What signatures are made of; another number where that changes. */
const GENERATION = 1;

/** Values of these types hold code and memory of a process. */
const LIVE_TYPES: ReadonlySet<string> = new Set(["MODEL", "VAE", "CLIP", "PIPE_LINE"]);

/** What results depend on besides the graph. */
export interface DiskSignerScope {
  readonly host?: Host;
  /** Nodes whose code changes with the engine's version only. */
  readonly builtIns?: Registry;
  /** false: values are taken as they are. */
  readonly validate?: boolean;
}

/**
 * Signatures that mean the same in every process and on every machine: equal ones are equal results. A node has one only
 * where everything that its result follows from is known, its sources included.
 */
export class DiskSigner {
  /** In an order in which sources come before their readers. */
  private readonly signed = new Map<string, { readonly node: PreparedNode; readonly signature: string }>();
  private readonly changes = new Map<string, string>();
  private hasOpaque = false;
  private readonly opaqueKey: OpaqueKey = () => {
    this.hasOpaque = true;
    return "";
  };

  constructor(
    private readonly engine: string,
    private readonly place: DiskSignerScope,
  ) {}

  /** Sources are signed before. `change` is what the node's `isChanged` said. */
  sign(node: PreparedNode, change: Change | undefined): void {
    const text = this.textOf(node, change);
    if (text === undefined) return;
    const signature = createHash("sha256").update(text).digest("hex");
    this.signed.set(node.id, { node, signature });
    if (change !== undefined) this.changes.set(node.id, this.stableKey(change.answer, "") ?? "");
  }

  /** The signature under which a node's result may be kept: undefined where a run must not miss what the node does. */
  storable(id: string): string | undefined {
    const signed = this.signed.get(id);
    if (signed === undefined) return undefined;
    const { hidden, outputs } = signed.node.definition;
    const isLive = outputs.some(({ type }) => type.split(",").some((member) => LIVE_TYPES.has(member.trim())));
    return isLive || Object.keys(hidden).length > 0 ? undefined : signed.signature;
  }

  /** Compares what `isChanged` says after the node ran: where it differs, neither it nor what reads it has a signature. */
  confirm(id: string, change: Change | undefined): void {
    const before = this.changes.get(id);
    if (before === undefined) return;
    if (change !== undefined && this.stableKey(change.answer, "") === before) return;
    this.signed.delete(id);
    for (const [reader, { node }] of this.signed) {
      if (node.links.some(({ source }) => !this.signed.has(source))) this.signed.delete(reader);
    }
  }

  private textOf({ id, definition, links, values }: PreparedNode, change: Change | undefined): string | undefined {
    const { host } = this.place;
    const isBuiltIn = this.place.builtIns?.get(definition.key) === definition;
    if (!isRepeatable(definition, isBuiltIn)) return undefined;
    // isChanged is not told what links will bring: a file named by one may be another tomorrow
    if (definition.isChanged !== undefined && (change?.answer === undefined || links.length > 0)) return undefined;
    const needsHost = !isBuiltIn || readsHost(definition);
    if (needsHost && host?.signature === undefined) return undefined;
    const sources: unknown[] = [];
    for (const { input, source, slot } of links) {
      const signed = this.signed.get(source);
      if (signed === undefined) return undefined;
      sources.push([input, signed.signature, slot]);
    }
    const given: unknown[] = [];
    for (const [input, { type }] of Object.entries(definition.inputs)) {
      if (!Object.hasOwn(values, input)) continue;
      const key = this.stableKey(values[input], type);
      if (key === undefined) return undefined;
      given.push([input, key]);
    }
    const changed = change === undefined ? null : this.stableKey(change.answer, "");
    if (changed === undefined) return undefined;
    return JSON.stringify([
      GENERATION,
      this.engine,
      definition.key,
      definition.cacheVersion ?? null,
      this.place.validate !== false,
      needsHost ? host!.signature : null,
      Object.values(definition.hidden).includes("UNIQUE_ID") ? id : null,
      changed,
      sources,
      given,
    ]);
  }

  private stableKey(value: unknown, type: string): string | undefined {
    this.hasOpaque = false;
    const key = valueKey(value, type, this.opaqueKey);
    return this.hasOpaque ? undefined : key;
  }
}

/**
 * Whether a run can do without the node where its result, or that of one that reads it, is at hand. Our own nodes use
 * hidden inputs only to save and to show; what others do with them nobody knows.
 */
function isRepeatable(definition: NodeDefinition, isBuiltIn: boolean): boolean {
  const { outputNode, writesFiles, hasUi, notIdempotent, reachesNetwork } = definition;
  if (outputNode || writesFiles || hasUi || notIdempotent || reachesNetwork) return false;
  return isBuiltIn || (definition.cacheVersion !== undefined && Object.keys(definition.hidden).length === 0);
}

/** Our own nodes that load models let one choose among the host's. */
const readsHost = ({ inputs }: NodeDefinition): boolean =>
  Object.values(inputs).some(({ choices }) => typeof choices === "function");
