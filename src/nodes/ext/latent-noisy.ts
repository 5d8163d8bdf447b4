import { inputError } from "../../base/errors.js";
import type { Latent, LoaderSettings, Model, Pipe } from "../../host/types.js";
import { scale } from "../../tensor/ops.js";
import { scaledRandn } from "../../tensor/random.js";
import { SCHEDULERS, sigmas } from "../../tensor/sampling/sigmas.js";
import { elementCount } from "../../tensor/tensor.js";
import { defineNode } from "../define.js";
import { choice, int, latent, model, pipe, seed } from "../inputs.js";
import { samplerName } from "../sampler-names.js";
import { checkSocket } from "../sockets.js";

const KEY = "ext latentNoisy";
const CELL = 8;
const CHANNELS = 4;

export const latentNoisy = defineNode({
  key: KEY,
  description: "Noise, or a latent, at the strength that steps start_at_step to end_at_step of a schedule remove.",
  deprecated: true,
  inputs: {
    sampler_name: samplerName(),
    scheduler: choice(SCHEDULERS),
    steps: int({ default: 10000, min: 0, max: 10000 }),
    start_at_step: int({ default: 0, min: 0, max: 10000 }),
    end_at_step: int({ default: 10000, min: 1, max: 10000 }),
    source: choice(["CPU", "GPU"]),
    seed: seed(),
    pipe: pipe({ optional: true }),
    optional_model: model({ optional: true }),
    optional_latent: latent({ optional: true }),
  },
  outputs: [
    { name: "pipe", type: "PIPE_LINE" },
    { name: "latent", type: "LATENT" },
    { name: "sigma", type: "FLOAT" },
  ],
  noiseStream: ({ source }) => (source === "CPU" ? "cpu" : source === "GPU" ? "gpu" : undefined),
  run: (inputs) => {
    const { sampling } = modelOf(inputs.optional_model, inputs.pipe);
    const shape = inputs.optional_latent === undefined ? noiseShape(inputs.pipe) : undefined;
    const end = Math.min(inputs.steps, inputs.end_at_step);
    const start = Math.min(inputs.start_at_step, end);
    const schedule = sigmas({
      model: sampling,
      sampler: inputs.sampler_name,
      scheduler: inputs.scheduler,
      steps: inputs.steps,
    });
    // some schedules are shorter than steps + 1: an index past their end reads the last entry
    const at = (step: number) => schedule[Math.min(step, schedule.length - 1)]!;
    const sigma = Math.fround(Math.fround(at(start) - at(end)) / Math.fround(sampling.latentFormat.scaleFactor));
    const { seed, source } = inputs;
    const samples =
      shape === undefined ? scale(inputs.optional_latent!.samples, sigma) : scaledRandn(shape, sigma, { seed, source });
    const noisy: Latent = { ...inputs.optional_latent, samples };
    return { pipe: { ...inputs.pipe, samples: noisy }, latent: noisy, sigma };
  },
});

function modelOf(model: Model | undefined, pipe: Pipe | undefined): Model {
  if (model !== undefined) return model;
  const at = { node: KEY, input: pipe === undefined ? "optional_model" : "pipe" };
  if (pipe?.model === undefined || pipe.model === null) {
    throw inputError("input.missing", at, "a model, as optional_model or in the pipe", undefined);
  }
  return checkSocket("MODEL", pipe.model, { node: KEY, input: "pipe.model" }) as Model;
}

/** [batch_size, 4, empty_latent_height div 8, empty_latent_width div 8]; fails before memory of that size is allocated. */
function noiseShape(pipe: Pipe | undefined): number[] {
  const settings = pipe?.loader_settings;
  if (settings === undefined || settings === null) {
    const expected = "optional_latent, or a pipe with loader_settings";
    throw inputError("input.missing", { node: KEY, input: "pipe" }, expected, undefined);
  }
  const cells = (key: keyof LoaderSettings) => Math.floor(sideOf(settings, key) / CELL);
  const shape = [sideOf(settings, "batch_size"), CHANNELS, cells("empty_latent_height"), cells("empty_latent_width")];
  elementCount(shape);
  return shape;
}

function sideOf(settings: LoaderSettings, key: keyof LoaderSettings): number {
  const value = settings[key];
  const at = { node: KEY, input: `pipe.loader_settings.${key}` };
  const expected = "a whole number from 0";
  if (value === undefined || value === null) throw inputError("input.missing", at, expected, value);
  if (typeof value !== "number") throw inputError("input.wrong-type", at, expected, value);
  if (!Number.isInteger(value)) throw inputError("input.not-finite", at, expected, value);
  if (value < 0) throw inputError("input.below-minimum", at, expected, value);
  return value;
}
