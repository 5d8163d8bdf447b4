import { Tensor } from "latentkit";

const f = Math.fround;

/** The golden denoiser: the posterior mean of x in float32, left to right as golden/README.md writes it. */
export function analyticDenoised(
  x: Tensor,
  sigma: number,
  { isFlow, kind, c }: { isFlow: boolean; kind: "gauss" | "mix"; c: number },
): Tensor {
  const [sd2, mu, m] = [0.25, 0.3125, 0.75];
  const s = f(sigma);
  const a = isFlow ? f(1 - s) : 1;
  const s2 = f(s * s);
  const v = f(f(f(a * a) * sd2) + s2);
  const shift = f(c);
  return Tensor.from(
    x.data.map((value) => {
      const q = kind === "gauss" ? f(mu + shift) : f(f(f(Math.tanh(f(f(f(a * m) * value) / v))) * m) + shift);
      return f(f(f(f(a * sd2) * value) + f(s2 * q)) / v);
    }),
    x.shape,
  );
}
