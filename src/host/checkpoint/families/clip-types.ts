import { describe, LatentkitError } from "../../../base/errors.js";
import { joined, narrowed } from "../../../tensor/parts.js";
import { Tensor } from "../../../tensor/tensor.js";
import type { Conditioning } from "../../types.js";
import type { ModelPart } from "../session/model-part.js";
import type { Runtime } from "../session/runtime.js";
import type { Encodings, JoinedFamily } from "../text-encoder/joined-clip.js";
import { Qwen3Clip, type Qwen3Config, type Qwen3Reading } from "../text-encoder/qwen3.js";
import type { EncoderName, StableDiffusionFamily, TextEncoderName } from "../text-encoder/recognise.js";
import { tokenizeFlux2 } from "../tokenizer/qwen.js";
import { unsupported } from "../weights/stored.js";

const present = (...widths: (number | undefined)[]): number[] => widths.filter((width) => width !== undefined);

/** T5 makes the context, CLIP-L the pooled text. */
const FLUX_CLIP: JoinedFamily = {
  name: "Flux",
  type: "flux",
  encoders: ["l", "t5"],
  isPartial: false,
  fewest: 256,
  emptyEnds: true,
  // all layers share the pooled text
  clipFamily: "sd1",
  hasLayers: false,
  combine: ({ l, t5 }) => [t5!, { pooled_output: l![1].pooled_output }],
  contextWidths: ({ t5 }) => present(t5),
  pooledWidth: ({ l }) => l,
};

/** T5 alone makes the context. */
const CHROMA_CLIP: JoinedFamily = {
  ...FLUX_CLIP,
  name: "Chroma",
  type: "chroma",
  encoders: ["t5"],
  fewest: 1,
  // decisions: Weights of Chroma's tokens are measured from padding
  emptyEnds: false,
  combine: ({ t5 }) => [t5!, {}],
  pooledWidth: () => undefined,
};

/** Layers whose inputs are the context: a quarter, half and three quarters of the way. */
const FLUX2_STATES = [9, 18, 27];
const FLUX2_LAYERS = FLUX2_STATES.at(-1)! + 1;
const FLUX2_READING: Qwen3Reading = { states: FLUX2_STATES, fewest: 512, tokenize: tokenizeFlux2 };
const LAYER = /^model\.layers\.(\d+)\./;

/** The clip of Flux.2 klein. Throws model.unsupported for a model with fewer layers than it reads. */
export function flux2Clip(runtime: Runtime, part: ModelPart<Qwen3Config>): Qwen3Clip {
  const { config, weights } = part;
  if (config.layers < FLUX2_LAYERS)
    throw unsupported(
      part.file.name,
      `a text encoder Qwen3 of ${FLUX2_LAYERS} layers for Flux.2`,
      `one of ${config.layers}`,
    );
  // layers after the last state are neither loaded nor counted
  const used = [...weights].filter(([key]) => Number(LAYER.exec(key)?.[1] ?? 0) < FLUX2_LAYERS - 1);
  return new Qwen3Clip(runtime, part.with({ ...config, layers: FLUX2_LAYERS }, new Map(used)), FLUX2_READING);
}

/** Numbers of a token of CLIP-L and of CLIP-G, which are zeros where one of them is missing. */
const WIDTHS = { l: 768, g: 1280 } as const;

/**
 * CLIP's encoders side by side make the first tokens, T5 those after them. Without T5 the model fills their numbers with
 * zeros. @internal
 */
export const SD3_CLIP: JoinedFamily = {
  name: "SD 3",
  type: "sd3",
  encoders: ["l", "g", "t5"],
  isPartial: true,
  fewest: 77,
  emptyEnds: true,
  // the layer before the last, without a final norm
  clipFamily: "sdxl",
  hasLayers: true,
  combine: combineSd3,
  // without T5, a text for CLIP-L alone makes a narrower one
  contextWidths: ({ l, g, t5 }) =>
    t5 === undefined ? present(l, g === undefined ? undefined : (l ?? WIDTHS.l) + g) : [t5],
  pooledWidth: ({ l = WIDTHS.l, g = WIDTHS.g }) => l + g,
};

function combineSd3({ l, g, t5 }: Encodings): Conditioning[number] {
  const first = l === undefined && g === undefined ? undefined : sideBySide(l?.[0], g?.[0]);
  const pooled_output = joined([pooledOf(l, "l"), pooledOf(g, "g")], 1);
  if (first === undefined && t5 === undefined)
    throw new LatentkitError("value.invalid", "Prompt: expected a text for one of SD 3's encoders, received none.");
  if (first === undefined || t5 === undefined) return [(first ?? t5)!, { pooled_output }];
  return [joined([widened(first, t5.shape[2]!), t5], 1), { pooled_output }];
}

/** The tokens of both, as many as the shorter has, with zeros for CLIP-L if it is missing. */
function sideBySide(l: Tensor | undefined, g: Tensor | undefined): Tensor {
  const length = Math.min(...[l, g].flatMap((tokens) => tokens?.shape[1] ?? []));
  const cut = (tokens: Tensor): Tensor => narrowed(tokens, 1, 0, length);
  if (g === undefined) return cut(l!);
  return joined([l === undefined ? Tensor.zeros([1, length, WIDTHS.l]) : cut(l), cut(g)], 2);
}

function widened(tokens: Tensor, width: number): Tensor {
  const [items, length, own] = tokens.shape as [number, number, number];
  if (own > width) {
    const message = `Text encoders of SD 3: expected a T5 of at least ${own} numbers of a token, as CLIP's have, received ${width}.`;
    throw new LatentkitError("value.invalid", message);
  }
  return own === width ? tokens : joined([tokens, Tensor.zeros([items, length, width - own])], 2);
}

function pooledOf(entry: Conditioning[number] | undefined, name: keyof typeof WIDTHS): Tensor {
  const pooled = entry?.[1].pooled_output;
  return pooled instanceof Tensor ? pooled : Tensor.zeros([1, WIDTHS[name]]);
}

/** Families of CLIP's encoders that are loaded alone, by the input `type` of their loader. */
export const CLIP_TYPES: Readonly<Record<string, readonly StableDiffusionFamily[]>> = {
  stable_diffusion: ["sd1", "sd2", "sdxl-refiner"],
  sdxl: ["sdxl"],
};
/** Families that take CLIP's encoders and T5 together. */
export const JOINED_CLIPS: readonly JoinedFamily[] = [FLUX_CLIP, CHROMA_CLIP, SD3_CLIP];

/** Family of an encoder that is the only one in its clip. */
export const FAMILY_OF_ENCODER = { l: "sd1", h: "sd2", g: "sdxl-refiner" } as const;

/** Language models in words, and types by which their loader knows the families that have them alone. */
const LANGUAGE_MODELS: Readonly<Record<string, readonly [words: string, types: readonly string[]]>> = {
  qwen3: ["Qwen3", ["lumina2", "flux2"]],
  "qwen2.5-vl": ["Qwen2.5-VL", ["qwen_image"]],
  t5: ["T5", []],
};
/** Whether an encoder is one of CLIP's. */
export const isOfClip = (encoder: EncoderSize): encoder is EncoderSize<TextEncoderName> =>
  LANGUAGE_MODELS[encoder.name] === undefined;

/** Types of families that read other states of a Qwen2.5-VL encoder than Qwen-Image does. */
const OTHER_QWEN25_TYPES: readonly string[] = ["hunyuan_image", "longcat_image"];

/** A text encoder, and the numbers that it makes of a token and of a whole text. */
export interface EncoderSize<Name extends EncoderName = EncoderName> {
  readonly name: Name;
  readonly width: number;
  /** Absent for language models. */
  readonly pooled?: number;
}

/** Widths of a context and of its pooled text. */
export interface EncodingSizes {
  /** Those that the context of a text may have. Empty: they are not known. */
  readonly widths: readonly number[];
  /** Absent: it is not known. */
  readonly pooled?: number;
}
export const UNKNOWN_SIZES: EncodingSizes = { widths: [] };

/** Widths of what encoders make together as a type; unknown if they do not belong together. */
export function encodingSizes(encoders: readonly EncoderSize[], type: string | undefined): EncodingSizes {
  const sizeOf = (name: EncoderName): EncoderSize | undefined => encoders.find((each) => each.name === name);
  const joined = JOINED_CLIPS.find((family) => family.type === type);
  if (joined !== undefined) {
    const [l, g, t5] = [sizeOf("l"), sizeOf("g"), sizeOf("t5")];
    const widths = joined.contextWidths({ l: l?.width, g: g?.width, t5: t5?.width });
    return { widths, pooled: joined.pooledWidth({ l: l?.pooled, g: g?.pooled }) };
  }
  const [first, ...others] = encoders;
  if (first === undefined || (others.length > 0 && !encoders.every(isOfClip))) return UNKNOWN_SIZES;
  if (first.name === "qwen3" && type === "flux2") return { widths: [FLUX2_STATES.length * first.width] };
  const width = encoders.reduce((sum, each) => sum + each.width, 0);
  return { widths: [width], pooled: others.length === 0 ? first.pooled : sizeOf("g")?.pooled };
}

/** Why a file with these encoders cannot be loaded with a type; undefined if it can. */
export function typeRefusal(file: string, names: readonly EncoderName[], type: string): LatentkitError | undefined {
  const together = JOINED_CLIPS.find((family) => family.type === type);
  const isForeign = (name: EncoderName): boolean => {
    if (together !== undefined) return !together.encoders.some((own) => own === name);
    if (name === "qwen2.5-vl") return OTHER_QWEN25_TYPES.includes(type);
    return name !== "qwen3" && CLIP_TYPES[type] === undefined;
  };
  const name = names.find((each) => isForeign(each) || (each === "t5" && together === undefined));
  if (name === undefined) return undefined;
  const [words, own] = LANGUAGE_MODELS[name] ?? [name, Object.keys(CLIP_TYPES)];
  const joining = JOINED_CLIPS.flatMap(({ type, encoders }) => (encoders.some((each) => each === name) ? [type] : []));
  const expected = `one of the types ${[...own, ...joining].join(", ")} for a text encoder ${words}`;
  return unsupported(file, expected, `type ${describe(type)}`);
}
