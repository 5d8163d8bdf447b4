import { describe, LatentkitError } from "../base/errors.js";
import { hostModel } from "../host/derived-model.js";
import type { Host, HostFiles } from "../host/host.js";
import type { Checkpoint, Clip, Conditioning, Model, ModelPatch } from "../host/types.js";
import type { Tensor } from "../tensor/tensor.js";
import type { NodeContext } from "./define.js";
import { type ChoiceContext, choice, clip, type FileKind, model } from "./inputs.js";

/** Input with the choice of the host's files of a kind; any text if it does not have models of the kind. */
export const fileName = (kind: keyof HostFiles) => ({
  ...choice(({ host }) => host?.files?.(kind), { tooltip: `One of the host's ${PLURALS[kind]}.` }),
  files: kind,
});

/** The parts of a node's context that loading a file needs. */
export type Loading = Pick<NodeContext, "host" | "signal" | "log">;

/** Loads the checkpoint that the input `ckpt_name` names. Fails as its host does, with the input's name in front. */
export const loadHostCheckpoint = (name: string, { host, signal, log }: Loading): Promise<Checkpoint> =>
  atInput("ckpt_name", () => host.loadCheckpoint(name, signal, log));

/**
 * Loads the file of a kind that an input names. Fails with host.missing if the host has none, with input.not-in-list for a
 * name that it does not list, and as its host does, with the input's name in front.
 */
export async function loadHostFile<Kind extends keyof HostFiles>(
  kind: Kind,
  input: string,
  name: string,
  { host, signal, log }: Loading,
  settings?: Readonly<Record<string, string>>,
): Promise<HostFiles[Kind]> {
  const names = host.files?.(kind);
  if (names === undefined || host.loadFile === undefined) throw lacking(host, `has no ${PLURALS[kind]}`);
  // a name that came through a link was not validated
  const file = names.includes(name) ? name : host.fileOf?.(kind, name);
  if (file !== undefined) return atInput(input, () => host.loadFile!(kind, file, signal, settings, log));
  const message = `${hostName(host)}: expected one of its ${PLURALS[kind]}, received ${describe(name)}.`;
  throw new LatentkitError("input.not-in-list", message, { received: describe(name) });
}

/** Codes of errors that a model file causes. */
const OF_FILES = /^(?:model|safetensors|file)\./;

/** Runs the work on a model file; its errors get the name of the input that names the file. */
export async function atInput<Result>(input: string, work: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof LatentkitError) || !OF_FILES.test(error.code)) throw error;
    const message = `input "${input}": ${error.message}`;
    throw new LatentkitError(error.code, message, { ...error.details, input }, { cause: error });
  }
}

/** Error of a host that lacks something that a node needs: it "has no LoRAs". */
export const lacking = (host: Host, lack: string): LatentkitError =>
  new LatentkitError("host.missing", `${hostName(host)} ${lack}.`);

/** The model with a changed network. Fails with host.missing if its host cannot change it. */
export function patchedModel(model: Model, { node, inputs }: ModelPatch, host: Host): Model {
  if (model.patch === undefined) throw lacking(host, `cannot apply ${node} to this model`);
  return model.patch({ node, inputs });
}

/** MODEL whose network the node changes, unless another input has a value that switches this off. */
export const changedModel = (unless?: readonly [input: string, value: unknown]) => ({
  ...model(),
  needs: { ability: "patches", unless } as const,
});

/** CLIP with encoders other than CLIP's. */
export const textsClip = () => ({ ...clip(), needs: { ability: "texts" } as const });

/** A node's run that changes the network of `model` by all other inputs; not at all if the input `off` is 0. */
export const patches =
  (node: string, off?: string) =>
  ({ model, ...inputs }: { readonly model: Model } & Readonly<Record<string, unknown>>, { host }: Loading) => ({
    MODEL: off !== undefined && inputs[off] === 0 ? model : patchedModel(model, { node, inputs }, host),
  });

/** A node's run that merges `model2` into the network of `model1`, by all other inputs; not at all at a `ratio` of 1. */
export const merges =
  (node: string) =>
  (
    { model1, model2, ...inputs }: { readonly model1: Model; readonly model2: Model; readonly ratio?: number },
    { host }: Loading,
  ) => ({
    MODEL:
      inputs.ratio === 1
        ? model1
        : patchedModel(model1, { node, inputs: { ...inputs, model2: hostModel(model2) } }, host),
  });

/** Order of the encoders' tokens, regardless of the order of the files. */
const ENCODER_ORDER = ["l", "g"];

/** Loads the text encoders that inputs name as one clip; the same errors as `loadHostFile`. */
export async function joinedClips(
  files: Readonly<Record<string, string>>,
  loading: Loading,
  settings?: Readonly<Record<string, string>>,
): Promise<Clip> {
  const clips: Clip[] = [];
  for (const [input, name] of Object.entries(files))
    clips.push(await loadHostFile("text_encoders", input, name, loading, settings));
  return joinedClip(clips);
}

function joinedClip(clips: readonly Clip[]): Clip {
  const [first, ...others] = clips;
  if (others.length === 0) return first!;
  const whole = clips.find(({ joinedWith }) => joinedWith !== undefined);
  if (whole !== undefined) return whole.joinedWith!(clips.filter((clip) => clip !== whole));
  if (clips.some(({ encodeText }) => encodeText !== undefined)) {
    const message = "Text encoders: only CLIP encoders can be combined; load the other one alone, with CLIPLoader.";
    throw new LatentkitError("value.invalid", message);
  }
  const rank = (name: string): number =>
    ENCODER_ORDER.includes(name) ? ENCODER_ORDER.indexOf(name) : ENCODER_ORDER.length;
  const encoders = clips.flatMap((clip) => clip.encoders).sort((a, b) => rank(a.name) - rank(b.name));
  const hasLayers = clips.every((clip) => clip.atLayer !== undefined);
  return {
    encoders,
    atLayer: hasLayers ? (layer) => joinedClip(clips.map((clip) => clip.atLayer!(layer))) : undefined,
  };
}

// Nodes of such families do the work that needs no model; texts go to `encodeTexts`, which a host must implement.
/**
 * Encodes texts for encoders beyond CLIP's, by their names, with the pictures that these see. Fails with host.missing if the
 * host's clips have no such encoders.
 */
export async function encodeTexts(
  clip: Clip,
  texts: Readonly<Record<string, string>>,
  host: Host,
  pictures: readonly Tensor[] = [],
): Promise<Conditioning> {
  if (clip.encodeTexts !== undefined) return clip.encodeTexts(texts, pictures);
  const names = Object.keys(texts);
  throw lacking(host, `has no clip with the ${names.length === 1 ? "encoder" : "encoders"} ${names.join(", ")}`);
}

/** Kinds of files in the words of a message. */
const PLURALS: Readonly<Record<keyof HostFiles, string>> = {
  loras: "LoRAs",
  vae: "separate VAEs",
  controlnet: "ControlNets",
  upscale_models: "upscale models",
  clip_vision: "CLIP vision models",
  ipadapter: "IPAdapters",
  style_models: "style models",
  gligen: "GLIGEN models",
  hypernetworks: "hypernetworks",
  diffusion_models: "separate diffusion models",
  text_encoders: "separate text encoders",
  model_patches: "model patches",
};

/** A clause about a host without files of a kind, for a graph that names one; undefined if it has some. */
export function lackOf(host: NonNullable<ChoiceContext["host"]>, kind: FileKind): string | undefined {
  if (kind === "checkpoints" || host.files?.(kind) !== undefined) return undefined;
  return `${hostName(host)} has no ${PLURALS[kind]}`;
}

/** A host in a message. */
const hostName = (host: { readonly name?: string }): string => `host ${describe(host.name)}`;
