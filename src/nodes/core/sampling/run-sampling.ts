import type { SampleOptions } from "../../../host/sampling/sample.js";
import type { Model } from "../../../host/types.js";
import { latentToRgb } from "../../../tensor/latent-rgb.js";
import { planesToImage } from "../../../tensor/ops.js";
import { LATENT_RGB } from "../../../tensor/sampling/latent-rgb.js";
import type { ModelSampling } from "../../../tensor/sampling/model-sampling.js";
import type { Tensor } from "../../../tensor/tensor.js";
import type { NodeContext } from "../../define.js";

/** Options of sampling in a node: its signal stops the run, and each step is progress with a preview of its estimate. */
export const inNode = (
  { signal, progress }: Pick<NodeContext, "signal" | "progress">,
  { guider, sampler, sigmas, noise, latent }: Omit<SampleOptions, "signal" | "onStep">,
): SampleOptions => ({
  // named one by one: more names after spread ones take V8 microseconds
  guider,
  sampler,
  sigmas,
  noise,
  latent,
  signal,
  // adaptive steps may be more than the schedule has
  onStep: (sampled) => {
    const { step, total } = sampled;
    progress(Math.min(step + 1, total), total, () => previewOf(sampled.denoised, guider.model));
  },
});

/** An estimate in the model's units as a picture, by the host's own decoder where it has one. */
const previewOf = (denoised: Tensor, model: Model): Tensor | Promise<Tensor> | undefined =>
  model.preview?.(denoised) ?? cellsOf(denoised, model.sampling);

/** A small image [B, h, w, 3]; undefined for a format without published factors. */
function cellsOf(denoised: Tensor, { latentFormat }: ModelSampling): Tensor | undefined {
  const table = LATENT_RGB.find(({ format }) => format.name === latentFormat.name);
  if (table === undefined || denoised.shape.length !== 4 || denoised.shape[1] !== table.factors.length)
    return undefined;
  const asModel = { ...latentFormat, scaleFactor: 1, shiftFactor: 0 };
  const [factors, bias] = [Float64Array.from(table.factors.flat()), Float64Array.from(table.bias)];
  return planesToImage(latentToRgb(denoised, asModel, factors, bias));
}
