import { describe, LatentkitError } from "../base/errors.js";
import type { Guider } from "../host/sampling/guiders.js";
import type { InitialNoise } from "../host/sampling/noise.js";
import type { SamplerChoice } from "../host/sampling/solver.js";
import type {
  Clip,
  ClipVision,
  Conditioning,
  ControlNet,
  ImageAdapter,
  Latent,
  Model,
  Pipe,
  StyleModel,
  UpscaleModel,
  Vae,
} from "../host/types.js";
import type { Tensor } from "../tensor/tensor.js";

interface OutputFacts {
  /** ComfyUI's name of the type. */
  readonly type: string;
  /** Passed on element by element. */
  readonly list?: boolean;
  /** May be null; for the static type only. */
  readonly nullable?: boolean;
}

/** An output as an author writes it under its name. */
export type OutputType = string | OutputFacts;

/** Outputs by name, or as a list, whose order the static type of a result knows. */
export type OutputSource = Readonly<Record<string, OutputType>> | readonly ({ readonly name: string } & OutputFacts)[];

export interface OutputSpec {
  readonly name: string;
  readonly type: string;
  readonly list: boolean;
}

/** Static types of values by ComfyUI's name of their type; any other type is unknown. */
interface ValueByType {
  IMAGE: Tensor;
  MASK: Tensor;
  LATENT: Latent;
  CONDITIONING: Conditioning;
  PIPE_LINE: Pipe;
  MODEL: Model;
  VAE: Vae;
  CLIP: Clip;
  SAMPLER: SamplerChoice;
  SIGMAS: Tensor;
  NOISE: InitialNoise;
  GUIDER: Guider;
  CONTROL_NET: ControlNet;
  UPSCALE_MODEL: UpscaleModel;
  CLIP_VISION: ClipVision;
  CLIP_VISION_OUTPUT: object;
  IPADAPTER: ImageAdapter;
  EMBEDS: Tensor;
  STYLE_MODEL: StyleModel;
  GLIGEN: object;
  MODEL_PATCH: object;
  STRING: string;
  INT: number | bigint;
  FLOAT: number;
  BOOLEAN: boolean;
  LIST: unknown[];
}

type ValueOfType<Type> = Type extends keyof ValueByType ? ValueByType[Type] : unknown;
type ValueOfFacts<Facts> = Facts extends { type: infer Type }
  ? Facts extends { list: true }
    ? ValueOfType<Type>[]
    : Facts extends { nullable: true }
      ? ValueOfType<Type> | null
      : ValueOfType<Type>
  : unknown;
type ValueOf<Output> = Output extends string ? ValueOfType<Output> : ValueOfFacts<Output>;
type IsOne<Name, All = Name> = string extends Name
  ? false
  : Name extends All
    ? [All] extends [Name]
      ? true
      : false
    : never;

/**
 * Values of a node's outputs in order. Keys of a type have no order: several outputs that are declared by name give a
 * list without positions.
 */
export type ResultOf<Outputs> = Outputs extends readonly unknown[]
  ? { -readonly [At in keyof Outputs]: ValueOf<Outputs[At]> }
  : [keyof Outputs] extends [never]
    ? []
    : IsOne<keyof Outputs> extends true
      ? [ValueOf<Outputs[keyof Outputs]>]
      : ValueOf<Outputs[keyof Outputs]>[];

/** Outputs of the node `key` in order; `listFlags` overrides their own. Throws usage.invalid. */
export function outputSpecs(
  key: string,
  outputs: OutputSource,
  listFlags: readonly boolean[] | undefined,
): readonly OutputSpec[] {
  const entries: readonly (readonly [unknown, unknown])[] = Array.isArray(outputs)
    ? outputs.map((output) => [output?.name, output])
    : Object.entries(outputs);
  return entries.map(([name, output], slot) => {
    const facts = (typeof output === "string" ? { type: output } : (output ?? {})) as Partial<OutputFacts>;
    const { type, list = false } = facts;
    if (typeof name === "string" && typeof type === "string" && typeof list === "boolean")
      return { name, type, list: listFlags?.[slot] ?? list };
    const expected = "the name of a type, or { name, type, list }";
    const subject = `defineNode: ${key}, output ${describe(name)}`;
    throw new LatentkitError("usage.invalid", `${subject}: expected ${expected}, received ${describe(output)}.`);
  });
}
