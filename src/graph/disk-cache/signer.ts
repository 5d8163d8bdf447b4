import { createHash } from "node:crypto";
import type { Host } from "../../host/types.js";
import type { NodeDefinition } from "../../nodes/define.js";
import type { Registry } from "../../nodes/registry.js";
import type { Change } from "../memory/signature.js";
import { type OpaqueKey, valueKey } from "../memory/value-key.js";
import type { PreparedNode } from "../prepared.js";

/** Version of the composition of signatures. */
const GENERATION = 1;

/** Values of these types hold code and memory of a process. */
const LIVE_TYPES: ReadonlySet<string> = new Set([
  ...["MODEL", "VAE", "CLIP", "PIPE_LINE", "GUIDER", "SAMPLER"],
  ...["CONTROL_NET", "UPSCALE_MODEL", "CLIP_VISION", "STYLE_MODEL", "GLIGEN", "MODEL_PATCH"],
]);

/**
 * Signatures with the same meaning in every process and on every machine: equal ones mean equal results. A node has one
 * only where everything that its result depends on has a key, its sources included.
 */
export class DiskSigner {
  /** Signed nodes, sources before their readers. */
  private readonly signed = new Map<string, { readonly node: PreparedNode; readonly signature: string }>();
  private readonly changes = new Map<string, string>();
  private hasOpaque = false;
  private readonly opaqueKey: OpaqueKey = () => {
    this.hasOpaque = true;
    return "";
  };

  constructor(
    private readonly packageVersion: string,
    private readonly surroundings: { readonly host?: Host; readonly builtIns?: Registry },
    /** false: values are taken as they are. */
    private readonly isChecked = true,
  ) {}

  /** Signs a node after its sources; `change` is the result of its `isChanged`. */
  sign(node: PreparedNode, change: Change | undefined): void {
    const text = this.textOf(node, change);
    if (text === undefined) return;
    const signature = createHash("sha256").update(text).digest("hex");
    this.signed.set(node.id, { node, signature });
    if (change !== undefined) this.changes.set(node.id, this.stableKey(change.value, "") ?? "");
  }

  /** Signature to store a node's result under; undefined where its outputs are live objects or hidden inputs matter. */
  storable(id: string): string | undefined {
    const signed = this.signed.get(id);
    if (signed === undefined) return undefined;
    const { hidden, outputs } = signed.node.definition;
    const isLive = outputs.some(({ type }) => type.split(",").some((member) => LIVE_TYPES.has(member.trim())));
    return isLive || Object.keys(hidden).length > 0 ? undefined : signed.signature;
  }

  /** Takes the result of `isChanged` after the node ran: where it differs, the node and its readers lose their signatures. */
  confirm(id: string, change: Change | undefined): void {
    const before = this.changes.get(id);
    if (before === undefined) return;
    if (change !== undefined && this.stableKey(change.value, "") === before) return;
    this.signed.delete(id);
    for (const [reader, { node }] of this.signed) {
      if (node.links.some(({ source }) => !this.signed.has(source))) this.signed.delete(reader);
    }
  }

  private textOf({ id, definition, links, values }: PreparedNode, change: Change | undefined): string | undefined {
    const { host, builtIns } = this.surroundings;
    // their code changes with the package's version only
    const isBuiltIn = builtIns?.get(definition.key) === definition;
    if (!isRepeatable(definition, isBuiltIn)) return undefined;
    // isChanged does not see linked values: a file that a link names may differ tomorrow
    if (definition.isChanged !== undefined && (change?.value === undefined || links.length > 0)) return undefined;
    const needsHost = !isBuiltIn || readsHost(definition);
    if (needsHost && host?.signature === undefined) return undefined;
    const sources: unknown[] = [];
    for (const { input, source, slot } of links) {
      const signed = this.signed.get(source);
      if (signed === undefined) return undefined;
      sources.push([input, signed.signature, slot]);
    }
    const inputs: unknown[] = [];
    for (const [input, { type }] of Object.entries(definition.inputs)) {
      if (!Object.hasOwn(values, input)) continue;
      const key = this.stableKey(values[input], type);
      if (key === undefined) return undefined;
      inputs.push([input, key]);
    }
    const changed = change === undefined ? null : this.stableKey(change.value, "");
    if (changed === undefined) return undefined;
    return JSON.stringify([
      GENERATION,
      this.packageVersion,
      definition.key,
      definition.cacheVersion ?? null,
      this.isChecked,
      needsHost ? host!.signature : null,
      Object.values(definition.hidden).includes("UNIQUE_ID") ? id : null,
      changed,
      sources,
      inputs,
    ]);
  }

  private stableKey(value: unknown, type: string): string | undefined {
    this.hasOpaque = false;
    const key = valueKey(value, type, this.opaqueKey);
    return this.hasOpaque ? undefined : key;
  }
}

/**
 * Whether a run need not run the node where its result, or that of a reader, is stored. The package's own nodes use hidden
 * inputs only to save and to show; other nodes may do anything with them.
 */
function isRepeatable(definition: NodeDefinition, isBuiltIn: boolean): boolean {
  const { outputNode, writesFiles, hasUi, notIdempotent, reachesNetwork } = definition;
  if (outputNode || writesFiles || hasUi || notIdempotent || reachesNetwork) return false;
  return isBuiltIn || (definition.cacheVersion !== undefined && Object.keys(definition.hidden).length === 0);
}

/** Whether a node of the package loads models: those that do have a choice of the host's. */
const readsHost = ({ inputs }: NodeDefinition): boolean =>
  Object.values(inputs).some(({ choices }) => typeof choices === "function");
