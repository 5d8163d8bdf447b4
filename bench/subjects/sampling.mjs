import { invokeNode, modelSampling, Tensor } from "latentkit";

const STEPS = 20;
/** JavaScript is compiled while it runs, as in chain.mjs. */
const WARM_UP_MS = 2500;

/** A run of KSampler at cfg 7 with a denoiser that costs nothing: what sampling itself costs. */
export async function samplingRun({ shape, sampler, rescale }) {
  const [, ...item] = shape;
  const estimate = Tensor.full([2 * shape[0], ...item], 0.1);
  const free = { sampling: { ...modelSampling("sd15") }, predict: async () => estimate };
  const patched = rescale !== undefined && (await invokeNode("RescaleCFG", { model: free, multiplier: rescale }));
  const model = patched ? patched.result[0] : free;
  const conditioning = [[Tensor.full([1, 77, 768], 0.1), {}]];
  const samples = Tensor.zeros(shape);
  const run = () =>
    invokeNode("KSampler", {
      model,
      seed: 42,
      steps: STEPS,
      cfg: 7,
      sampler_name: sampler,
      scheduler: "karras",
      positive: conditioning,
      negative: conditioning,
      latent_image: { samples },
      denoise: 1,
    });
  for (const end = performance.now() + WARM_UP_MS; performance.now() < end; ) await run();
  return run;
}
