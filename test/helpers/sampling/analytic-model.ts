import { type Conditioning, type Model, type ModelSampling, Tensor } from "latentkit";
import { isFlow } from "#src/tensor/sampling/noise-level.js";
import { analyticDenoised } from "./analytic.js";

/** One call of a model: its x, noise level and conditioning entries. */
export interface ModelCall {
  x: Tensor;
  sigma: number;
  cond: Conditioning;
}

/** A conditioning entry of the golden denoiser: a number for all latents, or one for each of a batch. */
export const analyticEntry = (
  c: number | number[],
  options: Record<string, unknown> = {},
  tokens = 1,
): Conditioning[number] => {
  const list = [c].flat();
  const values = list.flatMap((value) => Array<number>(tokens).fill(value));
  return [Tensor.from(values, [list.length, tokens, 1]), options];
};

/** The golden denoiser as a host's model: each part of x with the conditioning number of its entry. Writes its calls down. */
export function analyticModel(
  sampling: ModelSampling,
  kind: "gauss" | "mix" = "mix",
): { model: Model & Required<Pick<Model, "predict">>; calls: ModelCall[] } {
  const calls: ModelCall[] = [];
  const predict = async (x: Tensor, sigma: number, cond: Conditioning): Promise<Tensor> => {
    // x belongs to the caller: its memory is used again
    calls.push({ x: x.clone(), sigma, cond });
    const batch = x.shape[0]! / cond.length;
    const item = x.size / x.shape[0]!;
    const out = Tensor.zeros(x.shape);
    for (let row = 0; row < x.shape[0]!; row++) {
      const [values] = cond[Math.floor(row / batch)]!;
      const [from, to] = [row * item, (row + 1) * item];
      const c = values.data[((row % batch) % values.shape[0]!) * values.shape[1]!]!;
      const part = Tensor.from(x.data.slice(from, to), [item]);
      out.data.set(analyticDenoised(part, sigma, { isFlow: isFlow(sampling), kind, c }).data, from);
    }
    return out;
  };
  return { model: { sampling, predict }, calls };
}
