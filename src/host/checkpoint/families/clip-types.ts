import { describe, type LatentkitError } from "../../../base/errors.js";
import { CHROMA_CLIP, FLUX_CLIP, FLUX2_STATES } from "../flux/clip.js";
import { SD3_CLIP } from "../sd3/clip.js";
import type { JoinedFamily } from "../text-encoder/joined-clip.js";
import type { EncoderName, StableDiffusionFamily, TextEncoderName } from "../text-encoder/recognise.js";
import { unsupported } from "../weights/stored.js";

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

/** Widths of a context and of its pooled text, as far as they are known. */
export interface EncodingSizes {
  /** Absent if it depends on the texts. */
  readonly width?: number;
  readonly pooled?: number;
}

/** Widths of what encoders make together as a type; none if they do not belong together. */
export function encodingSizes(encoders: readonly EncoderSize[], type: string | undefined): EncodingSizes {
  const sizeOf = (name: EncoderName): EncoderSize | undefined => encoders.find((each) => each.name === name);
  const joined = JOINED_CLIPS.find((family) => family.type === type);
  if (joined !== undefined) {
    const pooled = joined.pooledWidth({ l: sizeOf("l")?.pooled, g: sizeOf("g")?.pooled });
    // CLIP's encoders stand before T5, as wide
    return { width: sizeOf("t5")?.width, pooled };
  }
  const [first, ...others] = encoders;
  if (first === undefined || (others.length > 0 && !encoders.every(isOfClip))) return {};
  if (first.name === "qwen3" && type === "flux2") return { width: FLUX2_STATES.length * first.width };
  const width = encoders.reduce((sum, each) => sum + each.width, 0);
  return { width, pooled: others.length === 0 ? first.pooled : sizeOf("g")?.pooled };
}

/** Why a file with these encoders cannot be loaded with a type; undefined if it can. */
export function typeRefusal(file: string, names: readonly EncoderName[], type: string): LatentkitError | undefined {
  const joined = JOINED_CLIPS.find((family) => family.type === type);
  const isForeign = (name: EncoderName): boolean => {
    if (joined !== undefined) return !joined.encoders.some((own) => own === name);
    if (name === "qwen2.5-vl") return OTHER_QWEN25_TYPES.includes(type);
    return name !== "qwen3" && CLIP_TYPES[type] === undefined;
  };
  const name = names.find((each) => isForeign(each) || (each === "t5" && joined === undefined));
  if (name === undefined) return undefined;
  const [words, own] = LANGUAGE_MODELS[name] ?? [name, Object.keys(CLIP_TYPES)];
  const joining = JOINED_CLIPS.flatMap(({ type, encoders }) => (encoders.some((each) => each === name) ? [type] : []));
  const expected = `one of the types ${[...own, ...joining].join(", ")} for a text encoder ${words}`;
  return unsupported(file, expected, `type ${describe(type)}`);
}
