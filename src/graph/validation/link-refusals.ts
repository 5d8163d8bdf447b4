import type { GivenPart, LoadedPart } from "../../host/host.js";
import type { ChoiceContext, FileKind } from "../../nodes/inputs.js";
import type { Registry } from "../../nodes/registry.js";
import type { PreparedLink, PreparedNode } from "../prepared.js";
import type { GraphError } from "./graph-error.js";
import { loadError } from "./host-refusals.js";

/** Nodes behind an input that are looked at: a graph may be long, and have many samplers. */
const MOST_NODES = 64;

/** Inputs of a node by which one part takes what others make. */
interface Meeting {
  readonly taker: "model" | "guider" | "vae";
  readonly given: readonly string[];
  /** Inputs that count only if `cfg` is not 1. */
  readonly guided?: readonly string[];
}

const SAMPLER: Meeting = { taker: "model", given: ["latent_image", "positive"], guided: ["negative"] };
const ENCODER: Meeting = { taker: "vae", given: [] };
const DECODER: Meeting = { taker: "vae", given: ["samples"] };

/** Nodes at which parts of model files meet, in a guider where a sampler uses it. */
const MEETINGS: Readonly<Record<string, Meeting>> = {
  KSampler: SAMPLER,
  KSamplerAdvanced: SAMPLER,
  SamplerCustom: SAMPLER,
  SamplerCustomAdvanced: { taker: "guider", given: ["latent_image"] },
  BasicGuider: { taker: "model", given: ["conditioning"] },
  CFGGuider: { taker: "model", given: ["positive"], guided: ["negative"] },
  DualCFGGuider: { taker: "model", given: ["cond1"] },
  PerpNegGuider: { taker: "model", given: ["positive", "negative", "empty_conditioning"] },
  VAEDecode: DECODER,
  VAEDecodeTiled: DECODER,
  VAEEncode: ENCODER,
  VAEEncodeForInpaint: ENCODER,
  VAEEncodeTiled: ENCODER,
};

/** Types of inputs that an output of a type is made of, by all nodes of the package but some. */
interface Way {
  readonly from: readonly string[];
  readonly except?: readonly string[];
}

const WAYS: Readonly<Record<string, Way>> = {
  GUIDER: { from: ["MODEL"] },
  MODEL: { from: ["MODEL"] },
  CLIP: { from: ["CLIP"] },
  VAE: { from: [] },
  CONDITIONING: {
    from: ["CONDITIONING", "CLIP"],
    // their conditionings may never count, or a picture stands for the pooled text
    except: [
      "ConditioningSetArea",
      "ConditioningSetAreaPercentage",
      "ConditioningSetAreaStrength",
      "ConditioningSetMask",
      "ConditioningSetTimestepRange",
      "unCLIPConditioning",
    ],
  },
  LATENT: {
    from: ["LATENT", "VAE"],
    // their latents may be zeros, which fit every model
    except: ["LatentMultiply", "LatentSubtract", "AddNoise", "InstructPixToPixConditioning", "ext latentNoisy"],
  },
};

const UNKNOWN: Way = { from: [] };

/** Kinds of the files that loaders of a type name. */
const KINDS = {
  MODEL: ["checkpoints", "diffusion_models"],
  CLIP: ["checkpoints", "text_encoders"],
  VAE: ["checkpoints", "vae"],
} as const satisfies Readonly<Record<LoadedPart["type"], readonly FileKind[]>>;
const TYPES = Object.keys(KINDS) as LoadedPart["type"][];

/** Input by which a node sets the places of references. */
const PLACES = "reference_latents_method" satisfies GivenPart["type"];

/** A graph whose links are followed. */
export interface LinkSearch {
  readonly nodes: ReadonlyMap<string, PreparedNode>;
  readonly host: ChoiceContext["host"];
  /** Nodes that `WAYS` is true of. */
  readonly builtIns?: Registry;
}

/**
 * Errors of nodes that would have a model or VAE take what it cannot, by node. What may run is not among them: what passes
 * another package's node, comes from several parts of which one fits, or is not used in any step.
 */
export function linkRefusals(search: LinkSearch): Map<string, GraphError[]> {
  const errors = new Map<string, GraphError[]>();
  if (search.host?.misfit === undefined) return errors;
  for (const node of search.nodes.values()) {
    const meeting = meetingAt(node, search);
    if (meeting === undefined || !isCalled(node, meeting, search)) continue;
    errors.set(node.id, misfitsAt(node, meeting, search));
    const guider = search.nodes.get(linkTo(node, "guider")?.source ?? "");
    const guided = guider && meetingAt(guider, search);
    if (guided !== undefined) errors.set(guider!.id, misfitsAt(guider!, guided, search));
  }
  return errors;
}

const isKnown = ({ definition }: PreparedNode, { builtIns }: LinkSearch): boolean =>
  builtIns?.get(definition.key) === definition;

const meetingAt = (node: PreparedNode, search: LinkSearch): Meeting | undefined =>
  isKnown(node, search) && Object.hasOwn(MEETINGS, node.definition.key) ? MEETINGS[node.definition.key] : undefined;

const linkTo = ({ links }: PreparedNode, name: string): PreparedLink | undefined =>
  links.find(({ input }) => input === name);

function misfitsAt(node: PreparedNode, { taker, given, guided = [] }: Meeting, search: LinkSearch): GraphError[] {
  const { cfg = 1 } = node.values;
  const at = { nodeId: node.id, node: node.definition.key };
  const takers = partsBehind(linkTo(node, taker), search);
  const lack = misfitOf(takers, [undefined], search);
  if (lack !== undefined) return [loadError(at, taker, lack)];
  return [...given, ...(cfg === 1 ? [] : guided)].flatMap((input) => {
    const link = linkTo(node, input);
    const error =
      misfitOf(takers, partsBehind(link, search), search) ?? misfitOf(takers, partsBehind(link, search, true), search);
    return error === undefined ? [] : [loadError(at, input, error)];
  });
}

/** The error of the first pair of parts, if no pair fits. */
function misfitOf(takers: readonly GivenPart[], given: readonly (GivenPart | undefined)[], { host }: LinkSearch) {
  const errors = takers.flatMap((taker) =>
    given.map((part) => (taker.type === PLACES ? undefined : host!.misfit!(taker, part))),
  );
  return errors.includes(undefined) ? undefined : errors[0];
}

/** The parts of model files from which a value may come, or the places that nodes set; none if they are not known. */
function partsBehind(link: PreparedLink | undefined, search: LinkSearch, endsAtPlaces = false): readonly GivenPart[] {
  const parts: GivenPart[] = [];
  const seen = new Map<string, PreparedLink>();
  const follow = (next: PreparedLink): unknown => seen.set(`${next.slot} ${next.source}`, next);
  if (link !== undefined) follow(link);
  for (const { source, slot } of seen.values()) {
    const node = search.nodes.get(source);
    if (node === undefined || seen.size > MOST_NODES || !isKnown(node, search)) return [];
    const ends = endsAtPlaces && Object.hasOwn(node.definition.inputs, PLACES);
    const ways = ends ? [] : waysTo(node, slot, search);
    const part = ends ? placesOf(node) : ways.length === 0 ? loadedPart(node, slot) : undefined;
    if (part !== undefined) parts.push(part);
    else if (ways.length === 0) return [];
    for (const way of ways) follow(way);
  }
  return parts;
}

/** Links from which an output comes; none for a loader's, and if it is not known. */
function waysTo(node: PreparedNode, slot: number, search: LinkSearch): readonly PreparedLink[] {
  const { definition, links } = node;
  const { name, type } = definition.outputs[slot]!;
  const { from, except } = WAYS[type] ?? UNKNOWN;
  if (except?.includes(definition.key) === true || links.some((link) => link.spec.type === "PIPE_LINE")) return [];
  const meeting = meetingAt(node, search);
  if (meeting !== undefined && type === "LATENT") {
    const link = linkTo(node, meeting.taker);
    return link !== undefined && isCalled(node, meeting, search) ? [link] : [];
  }
  const own = links.filter((link) => from.includes(link.spec.type));
  const named = own.filter(({ input }) => input === name);
  return named.length > 0 ? named : own;
}

function placesOf({ values }: PreparedNode): GivenPart | undefined {
  const places = values[PLACES];
  return typeof places === "string" ? { type: PLACES, places } : undefined;
}

/** The part that a loader's output gives; undefined for any other node, and if a name comes through a link. */
function loadedPart({ definition, values }: PreparedNode, slot: number): LoadedPart | undefined {
  const type = TYPES.find((each) => each === definition.outputs[slot]!.type);
  if (type === undefined) return undefined;
  const files: { kind: FileKind; name: string }[] = [];
  for (const [input, spec] of Object.entries(definition.inputs)) {
    const kind = KINDS[type].find((each) => each === spec.files);
    if (kind === undefined) continue;
    const name = values[input];
    if (typeof name !== "string" || kind !== (files[0]?.kind ?? kind)) return undefined;
    files.push({ kind, name });
  }
  const settings = typeof values.type === "string" ? { type: values.type } : undefined;
  return files.length === 0 ? undefined : { type, files, settings };
}

/** Whether a node surely calls its model or VAE. */
function isCalled(node: PreparedNode, { taker }: Meeting, search: LinkSearch): boolean {
  if (taker === "vae") return true;
  const sigmas = linkTo(node, "sigmas");
  const source = sigmas === undefined ? node : search.nodes.get(sigmas.source);
  if (source === undefined || !isKnown(source, search)) return false;
  const { inputs } = source.definition;
  // sigmas of others may be none
  if (source !== node && Object.hasOwn(inputs, "sigmas")) return false;
  const numberOf = (input: string, absent: number): number =>
    Object.hasOwn(inputs, input) ? Number(source.values[input] ?? Number.NaN) : absent;
  const steps = numberOf("steps", Number.NaN);
  const end = Math.min(steps, numberOf("end_at_step", steps));
  // schedules of one step, and parts of one, may be none
  return steps * numberOf("denoise", 1) > (source === node ? 0 : 1) && numberOf("start_at_step", 0) < end;
}
