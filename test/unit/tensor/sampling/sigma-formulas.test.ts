import assert from "node:assert/strict";
import { type ModelSamplingName, modelSampling, SCHEDULERS, type Scheduler, sigmas } from "latentkit";
import { MODEL_SAMPLINGS } from "#src/tensor/sampling/model-sampling.js";

/** A schedule by the formulas of the specification, in double from the model's own table; without the final 0. */
type Formula = (table: Float32Array, maps: Maps, steps: number) => number[];

interface Maps {
  timestep(sigma: number): number;
  sigma(timestep: number): number;
}

const steps = (count: number) => Array.from({ length: count }, (_, i) => i);
const line = (from: number, to: number, count: number) =>
  steps(count).map((i) => (count === 1 ? from : from + ((to - from) * i) / (count - 1)));
const ends = (table: Float32Array): [number, number] => [table.at(-1)!, table[0]!];

/** Quantiles of the beta distribution with 0.6 and 0.6: over the angle of x = sin^2 its density is (sin * cos)^0.2. */
function betaQuantile(p: number): number {
  const count = 200_000;
  const density = (i: number) => (Math.sin(((i + 0.5) / count) * Math.PI) / 2) ** 0.2;
  let total = 0;
  for (let i = 0; i < count; i++) total += density(i);
  let sum = 0;
  let i = 0;
  while (i < count && sum < p * total) sum += density(i++);
  return Math.sin(((i / count) * Math.PI) / 2) ** 2;
}
const QUANTILES: Readonly<Record<number, readonly number[]>> = Object.fromEntries(
  [1, 2, 3].map((n) => [n, steps(n).map((i) => betaQuantile(1 - i / n))]),
);

const FORMULAS: Record<Scheduler, Formula> = {
  simple: (table, _, n) => steps(n).map((i) => table[table.length - 1 - Math.floor((i * table.length) / n)]!),
  sgm_uniform: (table, maps, n) => {
    const [high, low] = ends(table);
    return line(maps.timestep(high), maps.timestep(low), n + 1)
      .slice(0, n)
      .map(maps.sigma);
  },
  karras: (table, _, n) => {
    const [high, low] = ends(table).map((sigma) => sigma ** (1 / 7)) as [number, number];
    // svd's small sigmas lose digits here, in the reference too: its roundings are part of the schedule
    const span = Math.fround(low - high);
    return line(0, 1, n).map((x) => Math.fround(Math.fround(high) + Math.fround(x * span)) ** 7);
  },
  exponential: (table, _, n) => {
    const [high, low] = ends(table).map(Math.log) as [number, number];
    return line(high, low, n).map(Math.exp);
  },
  ddim_uniform: (table, _, n) => {
    const stride = Math.max(Math.floor(table.length / n), 1);
    return [...table.filter((_sigma, i) => i >= 1 && (i - 1) % stride === 0)].reverse();
  },
  beta: (table, _, n) => QUANTILES[n]!.map((quantile) => table[Math.round(quantile * (table.length - 1))]!),
  normal: (table, maps, n) => {
    const [high, low] = ends(table);
    return line(maps.timestep(high), maps.timestep(low), n).map(maps.sigma);
  },
  linear_quadratic: (table, _, n) => {
    const [high] = ends(table);
    if (n === 1) return [high];
    const h = 0.025;
    const linear = Math.floor(n / 2);
    const quadratic = n - linear;
    const d = linear - h * n;
    const [a, b] = [d / (linear * quadratic ** 2), h / linear - (2 * d) / quadratic ** 2];
    const y = (i: number) => (i < linear ? (i * h) / linear : a * i * i + b * i + a * linear ** 2);
    return steps(n).map((i) => (1 - y(i)) * high);
  },
  kl_optimal: (table, _, n) => {
    const [high, low] = ends(table).map(Math.atan) as [number, number];
    return line(high, low, n).map(Math.tan);
  },
};

/** A model's maps in double. Where it interpolates, between the logarithms of its table. */
function mapsOf(name: ModelSamplingName, table: Float32Array): Maps {
  const shifted = (a: number) => (t: number) => (a * t) / (1 + (a - 1) * t);
  const scaled = (multiplier: number, curve: (t: number) => number): Maps => ({
    timestep: (sigma) => sigma * multiplier,
    sigma: (timestep) => curve(timestep / multiplier),
  });
  switch (name) {
    case "svd":
    case "playground25":
      return { timestep: (sigma) => Math.log(sigma) / 4, sigma: (timestep) => Math.exp(4 * timestep) };
    case "sd3":
      return scaled(1000, shifted(3));
    case "auraflow":
      return scaled(1, shifted(1.73));
    case "z-image":
      return scaled(1, shifted(3));
    case "flux-schnell":
      return scaled(1, shifted(1));
    case "flux":
    case "qwen-image":
    case "flux2": {
      const mu = name === "flux2" ? 2.02 : 1.15;
      return scaled(1, (t) => Math.exp(mu) / (Math.exp(mu) + 1 / t - 1));
    }
    case "cascade-b":
    case "cascade-c":
      return cascade(name === "cascade-b" ? 1 : 2);
    default: {
      const logs = Array.from(table, Math.log);
      const nearest = (sigma: number) => {
        const distances = logs.map((log) => Math.abs(log - Math.log(sigma)));
        return distances.indexOf(Math.min(...distances));
      };
      const between = (timestep: number) => {
        const t = Math.min(Math.max(timestep, 0), logs.length - 1);
        const low = Math.floor(t);
        return Math.exp((1 - (t - low)) * logs[low]! + (t - low) * logs[Math.min(low + 1, logs.length - 1)]!);
      };
      return { timestep: nearest, sigma: between };
    }
  }
}

function cascade(shift: number): Maps {
  const s = 0.008;
  const curve = (t: number) => Math.cos((((t + s) / (1 + s)) * Math.PI) / 2) ** 2;
  return {
    timestep: (sigma) => (Math.acos(Math.sqrt(curve(0) / (sigma * sigma + 1))) / (Math.PI / 2)) * (1 + s) - s,
    sigma: (t) => {
      const plain = curve(t) / curve(0);
      const logSnr = Math.log(plain / (1 - plain)) + 2 * Math.log(1 / shift);
      const clamped = Math.min(Math.max(1 / (1 + Math.exp(-logSnr)), 0.0001), 0.9999);
      return Math.sqrt((1 - clamped) / clamped);
    },
  };
}

/** Relative tolerances of the golden set's README, which are the reference's own rounding. */
function tolerance(name: ModelSamplingName, scheduler: Scheduler, sigma: number): number {
  if (name.startsWith("cascade")) return sigma < 1 ? 4e-4 : 2e-5;
  if (scheduler === "kl_optimal") return name === "sd21-v-zsnr" ? 5e-4 : 2e-5;
  return name === "sd21-v-zsnr" ? 1.5e-5 : 3e-6;
}

describe("sigmas by the specification's formulas in double", () => {
  for (const name of MODEL_SAMPLINGS) {
    it(`${name}: every scheduler at 1 to 3 steps`, () => {
      const table = modelSampling(name).sigmas;
      const maps = mapsOf(name, table);
      const wrong: string[] = [];
      for (const scheduler of SCHEDULERS)
        for (const count of [1, 2, 3]) {
          const got = sigmas({ model: name, scheduler, steps: count });
          const expected = [...FORMULAS[scheduler](table, maps, count), 0];
          assert.equal(got.length, expected.length, `${scheduler} ${count}`);
          for (const [i, value] of expected.entries()) {
            const error = value === got[i] ? 0 : Math.abs(got[i]! - value) / value;
            if (!(error <= tolerance(name, scheduler, value)))
              wrong.push(`${scheduler} ${count} [${i}]: ${got[i]} for ${value}, ${error.toExponential(1)}`);
          }
        }
      assert.deepEqual(wrong, []);
    });
  }
});
