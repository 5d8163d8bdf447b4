import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { render } from "latentkit";

/** Noise of one seed, injected into a latent, decoded and saved: `batch` pictures of size x size. */
export const graphOf = (size, batch) => ({
  1: {
    class_type: "ext pipeLoader",
    inputs: {
      ckpt_name: "preview-sd15.safetensors",
      positive: "a lake at dawn",
      negative: "",
      batch_size: batch,
      empty_latent_width: size,
      empty_latent_height: size,
    },
  },
  2: {
    class_type: "ext latentNoisy",
    inputs: {
      sampler_name: "euler",
      scheduler: "karras",
      steps: 20,
      start_at_step: 8,
      end_at_step: 20,
      source: "CPU",
      seed: 7,
      pipe: ["1", 0],
    },
  },
  3: {
    class_type: "ext injectNoiseToLatent",
    inputs: {
      strength: 0.5,
      normalize: true,
      average: false,
      pipe_to_noise: ["2", 0],
      noise: ["2", 1],
      mix_randn_amount: 0.05,
      seed: 123,
    },
  },
  4: { class_type: "VAEDecode", inputs: { samples: ["3", 0], vae: ["1", 2] } },
  5: { class_type: "SaveImage", inputs: { images: ["4", 0], filename_prefix: "bench" } },
});

/** A render into a folder of its own, which goes with its files. */
export const pictureRender =
  ({ size, batch }, onEvent = (/** @type {any} */ _event) => {}) =>
  async () => {
    const outputDir = mkdtempSync(join(tmpdir(), "latentkit-bench-"));
    try {
      const { status, files, error } = await render(graphOf(size, batch), { outputDir, onEvent });
      if (status !== "success" || files.length !== batch) throw error ?? new Error(`the render ended with ${status}`);
    } finally {
      rmSync(outputDir, { recursive: true });
    }
  };
