import { defineNode } from "../define.js";
import { pipe } from "../inputs.js";

export const pipeOut = defineNode({
  key: "ext pipeOut",
  displayName: "Pipe Out",
  category: "ext/pipe",
  description: "Takes a pipe apart; what it does not hold is null.",
  inputs: { pipe: pipe() },
  outputs: [
    { name: "pipe", type: "PIPE_LINE" },
    { name: "model", type: "MODEL", nullable: true },
    { name: "positive", type: "CONDITIONING", nullable: true },
    { name: "negative", type: "CONDITIONING", nullable: true },
    { name: "latent", type: "LATENT", nullable: true },
    { name: "vae", type: "VAE", nullable: true },
    { name: "clip", type: "CLIP", nullable: true },
  ],
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
