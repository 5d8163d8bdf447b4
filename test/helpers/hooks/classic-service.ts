import { join } from "node:path";
import { createPreviewHost } from "latentkit";
import { createGraphAgent } from "latentkit/hooks";
import { temporaryFolder } from "../folders.js";
import { type RunningService, serviceStarter } from "./hook-service.js";

/** Samples a little picture. */
export const picture = (seed: unknown, steps = 4) => ({
  4: { class_type: "CheckpointLoaderSimple", inputs: { ckpt_name: "preview-sd15.safetensors" } },
  5: { class_type: "EmptyLatentImage", inputs: { width: 64, height: 64, batch_size: 1 } },
  6: { class_type: "CLIPTextEncode", inputs: { text: "a fox", clip: ["4", 1] } },
  3: {
    class_type: "KSampler",
    inputs: {
      ...{ seed, steps, cfg: 7, sampler_name: "euler", scheduler: "normal", denoise: 1 },
      ...{ model: ["4", 0], positive: ["6", 0], negative: ["6", 0], latent_image: ["5", 0] },
    },
  },
  8: { class_type: "VAEDecode", inputs: { samples: ["3", 0], vae: ["4", 2] } },
  9: { class_type: "SaveImage", inputs: { images: ["8", 0], filename_prefix: "fox" } },
});

/** Saves a picture of one colour, faster than a response can arrive. */
export const quick = (color = 255) => ({
  1: { class_type: "EmptyImage", inputs: { width: 8, height: 8, batch_size: 1, color } },
  9: { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "quick" } },
});

/** Copies an input image. */
export const copyOf = (image: string) => ({
  1: { class_type: "LoadImage", inputs: { image } },
  9: { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "copy" } },
});

/** Fails in node 9, which only learns while it runs where it would write. */
export const failing = {
  1: { class_type: "PrimitiveString", inputs: { value: "../.." } },
  9: {
    class_type: "ext saveTextLazy",
    inputs: { text: "x", output_file_path: ["1", 0], file_name: "x", file_extension: "txt", overwrite: true },
  },
};

/** Samples for minutes. */
export const endless = () => picture(1, 10_000);

/** Services with ComfyUI's classic API that start within a test and stop after it. Call inside `describe`. */
export function classicStarter(): (options?: {
  readonly web?: object;
  readonly limits?: object;
  readonly inThread?: boolean;
  readonly previews?: boolean;
}) => Promise<RunningService> {
  const folder = temporaryFolder();
  const start = serviceStarter();
  const agents: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    for (const agent of agents.splice(0)) await agent.close();
  });
  return async ({ web = {}, limits = {}, inThread = false, previews } = {}) => {
    const host = inThread ? undefined : createPreviewHost();
    const agent = createGraphAgent({ graph: quick(), outputDir: join(folder(), "out"), threads: 1, host, previews });
    agents.push(agent);
    return start({ agent, config: { comfy_classic: "token", ...web, limits } });
  };
}
