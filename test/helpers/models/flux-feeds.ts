import { Tensor } from "latentkit";
import { FLUX_KINDS, type FluxConfig } from "#src/host/checkpoint/flux/config.js";
import { changeEmbeddings, fluxEmbeddings } from "#src/host/checkpoint/flux/model.js";
import { fluxAxes, fluxPositions, joinedTokens, patchesOf, pictureOf } from "#src/host/checkpoint/flux/patches.js";
import { rotationTables } from "#src/host/checkpoint/networks/sinusoids.js";

/** Sizes of the golden model flux_dev. */
export const FLUX_DEV: FluxConfig = {
  kind: "flux",
  inputs: 64,
  outputs: 64,
  width: 96,
  heads: 3,
  headSize: 32,
  mlp: 384,
  norms: "scale",
  contextWidth: 48,
  pooledWidth: 64,
  doubleBlocks: 2,
  singleBlocks: 2,
  hasGuidance: true,
};

/** Sizes of the golden model flux2_dev; klein has no guidance. */
export const FLUX2_DEV: FluxConfig = {
  ...FLUX_DEV,
  kind: "flux2",
  inputs: 128,
  outputs: 128,
  mlp: 288,
  contextWidth: 96,
  pooledWidth: 0,
};

/** Sizes of the golden model of Chroma. */
export const CHROMA: FluxConfig = {
  ...FLUX_DEV,
  kind: "chroma",
  width: 64,
  heads: 2,
  mlp: 256,
  pooledWidth: 0,
  doubleBlocks: 1,
  singleBlocks: 1,
  hasGuidance: false,
  approximator: { inputs: 64, width: 80, layers: 2 },
};

/** Order of a patch's numbers. */
const ORDER = "cells-of-channels";

/** The latent of tokens that a network has made, with the sides of another one. */
export const latentOf = (tokens: Tensor, { shape }: Tensor, { kind }: FluxConfig): Tensor =>
  pictureOf(tokens, shape.slice(2) as [number, number], ORDER, FLUX_KINDS[kind].places.patchSide);

/** Inputs of a Flux transformer for one vector; `tensor` gives those that it names. */
export function fluxFeeds(
  // biome-ignore lint/suspicious/noExplicitAny: a case of the vectors
  { x, t, context, y, guidance, refs = [], ref_method }: any,
  config: FluxConfig,
  tensor: (name: string) => Tensor,
): Record<string, Tensor> {
  const latent = tensor(x);
  const [items] = latent.shape as [number];
  const text = tensor(context);
  const references: Tensor[] = refs.map(tensor);
  const sides = ({ shape }: Tensor) => shape.slice(2) as [number, number];
  const { places } = FLUX_KINDS[config.kind];
  const method = ref_method ?? places.references[0];
  const positions = fluxPositions(text.shape[1]!, sides(latent), references.map(sides), method, places);
  const { cos, sin } = rotationTables(positions, fluxAxes(config.headSize, places), places.theta);
  const patches = [latent, ...references].map((each) => patchesOf(each, ORDER, places.patchSide));
  const each = (value: number): Tensor => Tensor.full([items], value);
  return {
    x: joinedTokens(patches),
    time: config.approximator === undefined ? fluxEmbeddings(t) : changeEmbeddings(t, config),
    context: text,
    ...(config.pooledWidth === 0 ? {} : { y: y ? tensor(y) : Tensor.zeros([items, config.pooledWidth]) }),
    joint_cos: cos,
    joint_sin: sin,
    ...(config.hasGuidance
      ? {
          guidance: fluxEmbeddings(new Array<number>(items).fill(guidance ?? 0)),
          guided: each(guidance === undefined ? 0 : 1),
        }
      : {}),
  };
}
