import { LATENT_FORMATS } from "../../../tensor/sampling/latent-format.js";
import { type ModelSampling, modelSampling } from "../../../tensor/sampling/model-sampling.js";
import type { Reading } from "../reading.js";
import type { Family } from "../recognition/recognised.js";
import { ofFamily } from "../sampling.js";
import type { Config } from "./config.js";

/** Noise levels of a pipeline, and what its UNet predicts. */
export interface Schedule {
  readonly sampling: ModelSampling;
  readonly reading: Reading;
}

const READINGS = { epsilon: "eps", v_prediction: "v", sample: "x0" } as const satisfies Record<string, Reading>;
const PREDICTIONS = Object.keys(READINGS) as (keyof typeof READINGS)[];
const TIMESTEPS = 1000;
/** Scale of latents that the class of diffusers assumes. */
const SCALE = 0.18215;

/**
 * The schedule of a pipeline: betas as the scheduler's file has them, latents scaled as the VAE's has it. Samplers and
 * spacing are the graph's. Throws model.unsupported for other schedules and for latents with a shift, and model.invalid.
 */
export function scheduleOf(family: Family, scheduler: Config, vae: Config): Schedule {
  scheduler.oneOf("beta_schedule", ["scaled_linear"]);
  if (scheduler.has("num_train_timesteps")) scheduler.oneOf("num_train_timesteps", [TIMESTEPS]);
  scheduler.requireAbsent("trained_betas");
  for (const key of ["shift_factor", "latents_mean", "latents_std"]) vae.requireAbsent(key);
  const prediction = scheduler.has("prediction_type") ? scheduler.oneOf("prediction_type", PREDICTIONS) : "epsilon";
  const table = modelSampling(prediction === "v_prediction" ? "sd21-v" : "sd15", {
    linearStart: scheduler.positive("beta_start"),
    linearEnd: scheduler.positive("beta_end"),
    zsnr: scheduler.value("rescale_betas_zero_snr") === true,
  });
  const format = LATENT_FORMATS[family === "sdxl" || family === "sdxl-refiner" ? "SDXL" : "SD15"];
  const scaleFactor = vae.positive("scaling_factor") ?? SCALE;
  return {
    sampling: ofFamily(table, family, Object.freeze({ ...format, scaleFactor })),
    reading: READINGS[prediction],
  };
}
