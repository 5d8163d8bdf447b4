import { Tensor } from "latentkit";
import { type FluxConfig, fluxEmbeddings } from "#src/host/checkpoint/flux/build.js";
import { FLUX_THETA, fluxAxes, fluxPositions, joinedTokens, patchesOf } from "#src/host/checkpoint/flux/patches.js";
import { rotationTables } from "#src/host/checkpoint/networks/sinusoids.js";

/** Sizes of the golden model flux_dev. */
export const FLUX_DEV: FluxConfig = {
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
  const positions = fluxPositions(text.shape[1]!, sides(latent), references.map(sides), ref_method);
  const { cos, sin } = rotationTables(positions, fluxAxes(config.headSize), FLUX_THETA);
  const patches = [latent, ...references].map((each) => patchesOf(each, "cells-of-channels"));
  const each = (value: number): Tensor => Tensor.full([items], value);
  return {
    x: joinedTokens(patches),
    time: fluxEmbeddings(t),
    context: text,
    y: y ? tensor(y) : Tensor.zeros([items, config.pooledWidth]),
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
