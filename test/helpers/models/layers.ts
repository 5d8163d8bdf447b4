import assert from "node:assert/strict";
import { join } from "node:path";
import { Tensor } from "latentkit";
import { readSafetensors, toTensor } from "#src/io/safetensors.js";
import { goldenBytes, goldenText } from "../golden-file.js";
import { goldenModels } from "./golden.js";

/** One run of a bare UNet; strings name tensors. */
export interface UnetVector {
  readonly x: string;
  readonly timestep: readonly number[];
  readonly context: string;
  readonly y?: string | null;
  readonly out: string;
}

/** One run of a text encoder; strings name tensors. */
export interface TextVector {
  readonly encoder: "l" | "h" | "g";
  readonly ids: readonly number[];
  /** The last layer with the final norm. */
  readonly last?: string;
  readonly penultimate?: string;
  readonly penultimate_ln?: string;
  readonly hidden_3rd_last?: string;
  readonly pooled: string;
  readonly projected?: string;
}

interface Layers {
  readonly text: readonly TextVector[];
  readonly vae_decode: readonly { z: string; raw: string; image?: string }[];
  readonly vae_encode: readonly { image: string; moments?: string; latent: string }[];
  readonly vae_trace?: { z: string; raw: string; pixels: string; after: Readonly<Record<string, string>> };
  readonly unet: readonly UnetVector[];
  readonly unet_trace?: UnetVector & { readonly after: Readonly<Record<string, string>> };
  readonly modules: readonly { key: string; x: string; emb?: string; context?: string; out: string }[];
}

/** The layer vectors of one golden checkpoint, all of them or some. */
export function goldenLayers(name: string): Layers & { tensor(name: string): Tensor } {
  const path = join(goldenModels(), "layers", name);
  const { tensors } = readSafetensors(goldenBytes(`${path}.safetensors`)!);
  const layers = JSON.parse(goldenText(`${path}.json`)) as Layers;
  return { ...layers, tensor: (key) => toTensor(tensors.get(key)!) };
}

/** Inputs of a UNet for one vector. */
export const unetFeeds = (vector: UnetVector, tensor: (name: string) => Tensor): Record<string, Tensor> => ({
  x: tensor(vector.x),
  timestep: Tensor.from(vector.timestep, [vector.timestep.length]),
  context: tensor(vector.context),
  ...(vector.y ? { y: tensor(vector.y) } : {}),
});

/** Largest difference over max(1, largest value); shapes must be equal. */
export function layerError(actual: Tensor, expected: Tensor): number {
  assert.deepEqual([...actual.shape], [...expected.shape]);
  let [error, largest] = [0, 1];
  for (let i = 0; i < expected.size; i++) {
    error = Math.max(error, Math.abs(actual.data[i]! - expected.data[i]!));
    largest = Math.max(largest, Math.abs(expected.data[i]!));
    if (!Number.isFinite(actual.data[i]!)) assert.fail(`element ${i} is ${actual.data[i]}`);
  }
  return error / largest;
}
