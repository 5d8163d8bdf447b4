import type { WeightMap } from "../stored.js";
import type { Rows } from "./rows.js";

/** Where a weight is that a LoRA file names. */
export interface Place {
  readonly key: string;
  /** The rows that the layer is, where it is not the whole weight or has them in another order. */
  readonly rows?: Rows;
  /** True if the network multiplies from the other side than the LoRA expects. */
  readonly transposed?: true;
}

/** Places of the two weights of a layer. */
export interface ModulePlaces {
  weight?: Place;
  bias?: Place;
}

/** Names of a network's layers in the styles of LoRA files, with their places. */
export type NamedPlaces = readonly [names: readonly string[], places: ModulePlaces][];

export const underscored = (name: string): string => name.replaceAll(".", "_");

/** Layers by their own names. */
export function ownPlaces(weights: WeightMap): Map<string, ModulePlaces> {
  const modules = new Map<string, ModulePlaces>();
  for (const key of weights.keys()) {
    const dot = key.lastIndexOf(".");
    const kind = KINDS.get(key.slice(dot + 1));
    if (dot > 0 && kind !== undefined) addPlace(modules, key.slice(0, dot), kind, { key });
  }
  return modules;
}

/** Endings of weights; Flux calls those of its norms `scale`. */
const KINDS: ReadonlyMap<string, "weight" | "bias"> = new Map([
  ["weight", "weight"],
  ["bias", "bias"],
  ["scale", "weight"],
]);

export function addPlace(
  modules: Map<string, ModulePlaces>,
  name: string,
  kind: "weight" | "bias",
  place: Place,
): void {
  const module = modules.get(name) ?? {};
  module[kind] = place;
  modules.set(name, module);
}

/** The same rows of a layer's weight and of its bias. */
export const rowsOf = ({ weight, bias }: ModulePlaces, rows: Rows): ModulePlaces => ({
  weight: weight && { ...weight, rows },
  bias: bias && { ...bias, rows },
});

/**
 * Names of a transformer's layer. The styles, in this order: plain, ComfyUI and ai-toolkit, diffusers, PEFT, kohya,
 * OneTrainer, LyCORIS.
 */
export const transformerNames = (module: string): readonly string[] => [
  ...["", "diffusion_model.", "model.diffusion_model.", "transformer.", "base_model.model."].map((at) => at + module),
  ...["lora_unet_", "lora_transformer_", "lycoris_"].map((at) => at + underscored(module)),
];
