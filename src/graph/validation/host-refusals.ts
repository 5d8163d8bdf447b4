import { describe, LatentkitError } from "../../base/errors.js";
import { foreignFamily, ggufFamily, isGguf } from "../../host/foreign-families.js";
import type { EncoderFile, FileRefusal, HostAbility } from "../../host/host.js";
import type { NodeDefinition } from "../../nodes/define.js";
import { lackOf } from "../../nodes/host-files.js";
import type { ChoiceContext, FileKind } from "../../nodes/inputs.js";
import { type Graph, inputsOf } from "../parse.js";
import { customError, type GraphError, hostError } from "./graph-error.js";

/** Words for a host that lacks an ability. */
const LACKS: Readonly<Record<HostAbility, string>> = {
  patches: "has no models that nodes can modify",
  texts: "has no text encoders beyond CLIP's",
  "clip-vision": "has no checkpoints with a CLIP vision model",
};

/** Errors of a node whose files the host cannot load, or whose work its models cannot do, with any values. */
export function hostRefusals(
  definition: NodeDefinition,
  nodeId: string,
  values: Readonly<Record<string, unknown>>,
  host: ChoiceContext["host"],
): GraphError[] {
  const errors: GraphError[] = [];
  if (host === undefined) return errors;
  const isOff = hasNoEffect(definition, values);
  const at = { nodeId, node: definition.key };
  /** Lacks already reported: a node may name several files of a kind. */
  const lacks = new Set<string>();
  for (const [input, { files, needs, options }] of Object.entries(definition.inputs)) {
    const name = values[input];
    const isLoaded = files !== undefined && !(isOff && OPTIONAL.has(files));
    if (isLoaded && typeof name === "string" && name !== options.default) {
      const refusal = refusalOf(host, files, name, typeBeside(files, values));
      const lack = lackOf(host, files);
      if (refusal !== undefined) errors.push(fileError(at, input, name, refusal));
      else if (lack !== undefined && !lacks.has(lack))
        errors.push(hostError({ ...at, input }, definition.key, lack, name));
      if (lack !== undefined) lacks.add(lack);
    }
    if (needs === undefined || host.abilities === undefined || host.abilities.includes(needs.ability)) continue;
    const [other, off] = needs.unless ?? [];
    // a value that comes through a link may be one that needs nothing
    if (other !== undefined && (values[other] === undefined || values[other] === off)) continue;
    const lack = `host ${describe(host.name)} ${LACKS[needs.ability]}`;
    errors.push(hostError(at, definition.key, lack));
  }
  return errors;
}

/**
 * Error of a node with a missing file whose name, or the type beside it, is that of a family that runs elsewhere;
 * undefined for any other node, and for a family among `said`, which it joins.
 */
export function familyRefusal(
  { key, inputs }: NodeDefinition,
  nodeId: string,
  values: Readonly<Record<string, unknown>>,
  { host, said }: { readonly host: ChoiceContext["host"]; readonly said: Set<string> },
): GraphError | undefined {
  if (host === undefined) return undefined;
  for (const [input, { files }] of Object.entries(inputs)) {
    const name = values[input];
    if (files === undefined || !OF_FAMILIES.has(files) || typeof name !== "string") continue;
    const type = typeBeside(files, values);
    const own = foreignFamily(name);
    const family = own ?? (type === undefined ? undefined : foreignFamily(type));
    if (family === undefined || said.has(family) || isThere(host, files, name)) continue;
    said.add(family);
    const where = own === undefined ? `type ${describe(type)}` : name;
    return hostError({ nodeId, node: key, input }, family, where, name, "model.unsupported");
  }
  return undefined;
}

/** Kinds whose files belong to one family. */
const OF_FAMILIES: ReadonlySet<FileKind> = new Set(["checkpoints", "diffusion_models", "text_encoders"]);

/** Whether the host has a file of the name, or reports it better. */
function isThere(host: NonNullable<ChoiceContext["host"]>, kind: FileKind, name: string): boolean {
  const names = kind === "checkpoints" ? host.checkpoints() : host.files?.(kind);
  return (
    names?.includes(name) === true ||
    host.fileOf?.(kind, name) !== undefined ||
    refusalOf(host, kind, name) !== undefined
  );
}

/** Kinds whose nodes load nothing if their strengths are 0. */
const OPTIONAL: ReadonlySet<FileKind> = new Set(["loras", "hypernetworks"]);

/** Whether all strengths of a node are 0. */
function hasNoEffect({ inputs }: NodeDefinition, values: Readonly<Record<string, unknown>>): boolean {
  const strengths = Object.keys(inputs).filter((input) => input.includes("strength"));
  return strengths.length > 0 && strengths.every((input) => values[input] === 0);
}

/** The type that a text encoder is loaded with; undefined for one that comes through a link, and other kinds of files. */
const typeBeside = (kind: FileKind, { type }: Readonly<Record<string, unknown>>): string | undefined =>
  kind === "text_encoders" && typeof type === "string" ? type : undefined;

function refusalOf(
  host: NonNullable<ChoiceContext["host"]>,
  kind: FileKind,
  name: string,
  type?: string,
): FileRefusal | undefined {
  // a host that does not check files cannot read GGUF
  if (host.refusal === undefined && isGguf(name)) return { family: ggufFamily(name), format: "GGUF" };
  return host.refusal?.(kind, name, type === undefined ? undefined : { type });
}

/** Error of an input that a run would fail with. */
export function loadError(at: { nodeId: string; node: string }, input: string, error: LatentkitError): GraphError {
  const { code, message, details } = error;
  return customError(at, input, new LatentkitError(code, `input "${input}": ${message}`, details));
}

function fileError(
  at: { nodeId: string; node: string },
  input: string,
  name: string,
  refusal: FileRefusal,
): GraphError {
  if ("error" in refusal) return loadError(at, input, refusal.error);
  const { family, format } = refusal;
  const where = format === undefined ? name : `${name}: ${format}`;
  return hostError({ ...at, input }, family, where, name, "model.unsupported");
}

/** Types that encode prompts: a node without any of them does not read its texts as prompts. */
export const ENCODERS: ReadonlySet<string> = new Set(["CLIP", "PIPE_LINE"]);

/** Errors of a node whose presets stand for files that the host lacks. */
export function presetRefusals(
  nodeId: string,
  values: Readonly<Record<string, unknown>>,
  host: ChoiceContext["host"],
  search: EncoderSearch,
): GraphError[] {
  const { key, inputs } = search.definitions.get(nodeId)!;
  const at = { nodeId, node: key };
  return Object.entries(inputs).flatMap(([input, { preset }]): GraphError[] => {
    const value = values[input];
    if (host === undefined || preset === undefined || typeof value !== "string") return [];
    const lack = preset.kinds.map((kind) => lackOf(host, kind)).find((clause) => clause !== undefined);
    if (lack !== undefined) return [hostError({ ...at, input }, key, lack, value)];
    return modelFamilies(nodeId, host, search).flatMap((family) => {
      try {
        preset.filesOf(value, family, host);
        return [];
      } catch (error) {
        if (!(error instanceof LatentkitError)) throw error;
        return [loadError(at, input, error)];
      }
    });
  });
}

/** Nodes between a prompt and its model that are looked at: a graph may be long, and have many prompts. */
const MOST_NODES = 64;

/** Graph in which the files of encoders are looked for. */
export interface EncoderSearch {
  readonly graph: Graph;
  readonly definitions: ReadonlyMap<string, NodeDefinition>;
}

/** Files from which the text encoders of a node come, along its links; none if they are too long. */
export const encoderFiles = (from: string, search: EncoderSearch): EncoderFile[] =>
  filesAlong(from, ENCODERS, ["checkpoints", "text_encoders"], search);

const MODELS: ReadonlySet<string> = new Set(["MODEL"]);

/** Families of the models that a node gets, along its links, as far as headers say. */
export function modelFamilies(from: string, host: ChoiceContext["host"], search: EncoderSearch): string[] {
  const files = filesAlong(from, MODELS, ["checkpoints", "diffusion_models"], search);
  return [...new Set(files.flatMap(({ kind, name }) => host?.familyOf?.(kind, name) ?? []))];
}

/** Files of some kinds that nodes name along the links of some types; none if they are too long. */
function filesAlong<Kind extends FileKind>(
  from: string,
  types: ReadonlySet<string>,
  kinds: readonly Kind[],
  { graph, definitions }: EncoderSearch,
): { readonly kind: Kind; readonly name: string }[] {
  const files: { kind: Kind; name: string }[] = [];
  const seen = new Set([from]);
  for (const id of seen) {
    if (seen.size > MOST_NODES) return [];
    const given = inputsOf(graph.prompt, id) ?? {};
    for (const [input, { type, files: kind }] of Object.entries(definitions.get(id)?.inputs ?? {})) {
      const value = Object.hasOwn(given, input) ? given[input] : undefined;
      if (Array.isArray(value)) {
        const [source] = value as unknown[];
        if (types.has(type) && typeof source === "string" && definitions.has(source)) seen.add(source);
      } else if (typeof value === "string") {
        const own = kinds.find((each) => each === kind);
        if (own !== undefined) files.push({ kind: own, name: value });
      }
    }
  }
  return files;
}
