import type { Pipe } from "../../host/types.js";
import { defineNode } from "../define.js";
import { clip, conditioning, latent, model, pipe, vae } from "../inputs.js";

export const pipeEdit = defineNode({
  key: "ext pipeEdit",
  displayName: "Pipe Edit",
  category: "ext/pipe",
  description: "A copy of a pipe in which the inputs replace its parts.",
  inputs: {
    pipe: pipe(),
    model: model({ optional: true }),
    positive: conditioning({ optional: true }),
    negative: conditioning({ optional: true }),
    latent: latent({ optional: true }),
    vae: vae({ optional: true }),
    clip: clip({ optional: true }),
  },
  outputs: { pipe: "PIPE_LINE" },
  run: ({ pipe, model, positive, negative, latent: samples, vae, clip }) => {
    const parts = Object.entries({ model, positive, negative, vae, clip, samples }).filter(
      ([, part]) => part !== undefined && part !== null,
    );
    const edited: Pipe = { ...pipe, ...Object.fromEntries(parts) };
    return { pipe: edited };
  },
});
