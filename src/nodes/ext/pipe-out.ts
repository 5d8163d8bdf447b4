import { defineNode } from "../define.js";
import { pipe } from "../inputs.js";

export const pipeOut = defineNode({
  key: "ext pipeOut",
  displayName: "Pipe Out",
  category: "ext/pipe",
  description: "Takes a pipe apart; what it does not hold is null.",
  inputs: { pipe: pipe() },
  outputs: {
    pipe: "PIPE_LINE",
    model: "MODEL",
    positive: "CONDITIONING",
    negative: "CONDITIONING",
    latent: "LATENT",
    vae: "VAE",
    clip: "CLIP",
  },
  run: ({ pipe }) => ({
    pipe,
    model: pipe.model ?? null,
    positive: pipe.positive ?? null,
    negative: pipe.negative ?? null,
    latent: pipe.samples ?? null,
    vae: pipe.vae ?? null,
    clip: pipe.clip ?? null,
  }),
});
