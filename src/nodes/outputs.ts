import { describe, LatentkitError } from "../errors.js";
import type { Clip, Conditioning, Latent, Model, Pipe, Vae } from "../host/types.js";
import type { Tensor } from "../tensor/tensor.js";

interface OutputFacts {
  /** The host's name of the type. */
  readonly type: string;
  /** Handed out element by element. */
  readonly list?: boolean;
  /** Null where the node has none; for the static type alone. */
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

/** Static types of values by the host's name of their type; those of others are unknown. */
interface ValueByType {
  IMAGE: Tensor;
  MASK: Tensor;
  LATENT: Latent;
  CONDITIONING: Conditioning;
  PIPE_LINE: Pipe;
  MODEL: Model;
  VAE: Vae;
  CLIP: Clip;
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
 * Values of a node's outputs in order. Types know no order of names: several outputs that are declared by name give a list
 * without places.
 */
export type ResultOf<Outputs> = Outputs extends readonly unknown[]
  ? { -readonly [At in keyof Outputs]: ValueOf<Outputs[At]> }
  : [keyof Outputs] extends [never]
    ? []
    : IsOne<keyof Outputs> extends true
      ? [ValueOf<Outputs[keyof Outputs]>]
      : ValueOf<Outputs[keyof Outputs]>[];

/** The outputs of the node `key` in order; `listFlags` has the last word. Throws usage.invalid. */
export function outputSpecs(
  key: string,
  outputs: OutputSource,
  listFlags: readonly boolean[] | undefined,
): readonly OutputSpec[] {
  const named: readonly (readonly [unknown, unknown])[] = Array.isArray(outputs)
    ? outputs.map((output) => [output?.name, output])
    : Object.entries(outputs);
  return named.map(([name, output], slot) => {
    const facts = (typeof output === "string" ? { type: output } : (output ?? {})) as Partial<OutputFacts>;
    const { type, list = false } = facts;
    if (typeof name === "string" && typeof type === "string" && typeof list === "boolean")
      return { name, type, list: listFlags?.[slot] ?? list };
    const expected = "the name of a type, or { name, type, list }";
    const subject = `defineNode: ${key}, output ${describe(name)}`;
    throw new LatentkitError("usage.invalid", `${subject}: expected ${expected}, received ${describe(output)}.`);
  });
}
