import type { Tensor } from "latentkit";
import { patchesOf, pictureOf } from "#src/host/checkpoint/flux/patches.js";
import { timeEmbeddings } from "#src/host/checkpoint/networks/sinusoids.js";
import type { Sd3Config } from "#src/host/checkpoint/sd3/build.js";
import { placesOf } from "#src/host/checkpoint/sd3/model.js";
import type { Feeds } from "./session.js";

/** Sizes of the golden model of Stable Diffusion 3. */
export const SD3: Sd3Config = {
  channels: 16,
  width: 128,
  heads: 2,
  mlp: 512,
  contextWidth: 208,
  pooledWidth: 192,
  side: 24,
  blocks: 2,
  selfAttending: 1,
  hasHeadNorms: true,
};

/** Inputs of the network for one vector; `tensor` gives those that it names. */
export function sd3Feeds(
  // biome-ignore lint/suspicious/noExplicitAny: a case of the vectors
  { x, t, context, y }: any,
  tensor: (name: string) => Tensor,
): Feeds {
  const latent = tensor(x);
  const [rows, columns] = latent.shape.slice(2).map((side) => Math.ceil(side / 2)) as [number, number];
  const places = placesOf([rows, columns], SD3.side, "SD 3");
  return {
    x: patchesOf(latent, "cells-of-channels"),
    places: { int64: places, shape: [places.length] },
    time: timeEmbeddings(t),
    context: tensor(context),
    y: tensor(y),
  };
}

/** The latent of tokens that the network has made, with the sides of another one. */
export const sd3Latent = (tokens: Tensor, { shape }: Tensor): Tensor =>
  pictureOf(tokens, shape.slice(2) as [number, number], "channels-of-cells");
