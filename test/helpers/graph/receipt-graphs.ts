import { readFileSync } from "node:fs";
import type { Receipt } from "#src/render/receipt/receipt.js";
import { pngText } from "../png/png-chunks.js";
import { node } from "./graph-nodes.js";

/** Noise of two streams over test/graphs/input/lake.png, saved by node 6. */
export const noisyLake = (seed: unknown = 18446744073709551615n) => ({
  "1": node("LoadImage", { image: "lake.png" }),
  "2": node("ext pipeLoader", {
    ckpt_name: "preview-sd15.safetensors",
    positive: "a lake",
    negative: "",
    batch_size: 1,
    empty_latent_width: 64,
    empty_latent_height: 64,
  }),
  "3": node("ext latentNoisy", {
    sampler_name: "euler",
    scheduler: "karras",
    steps: 20,
    start_at_step: 8,
    end_at_step: 20,
    source: "GPU",
    seed,
    pipe: ["2", 0],
  }),
  "4": node("ext injectNoiseToLatent", {
    strength: 0.2,
    normalize: false,
    average: false,
    pipe_to_noise: ["3", 0],
    image_to_latent: ["1", 0],
    mix_randn_amount: 0.5,
    seed: 7,
  }),
  "5": node("VAEDecode", { samples: ["4", 0], vae: ["2", 2] }),
  "6": node("SaveImage", { images: ["5", 0], filename_prefix: "noisy" }),
});

/** A picture of the input folder, saved by node 2. */
export const saved = (image: unknown = "lake.png", more: object = {}) => ({
  "1": node("LoadImage", { image }),
  "2": node("ext saveImageLazy", { images: ["1", 0], filename_prefix: "saved", save_metadata: true, ...more }),
});

/** The text chunks of a PNG file, read without the library under test. */
export const textsOf = (path: string): Record<string, string> => Object.fromEntries(pngText(readFileSync(path)));

export const receiptOf = (path: string): Receipt => JSON.parse(textsOf(path).latentkit!) as Receipt;
