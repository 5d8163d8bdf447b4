import { exp, log } from "../../../native/elementary.js";
import { roundHalfEven } from "../../../tensor/rounding.js";
import { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { choice, float, int } from "../../inputs.js";

// decision 210
/** Sabour et al. 2024, optimised for 10 steps. */
const LEVELS = {
  SD1: [
    14.6146412293, 6.4745760956, 3.8636745985, 2.694615152, 1.8841921177, 1.3943805092, 0.9642583904, 0.6523686016,
    0.3977456272, 0.1515232662, 0.0291671582,
  ],
  SDXL: [
    14.6146412293, 6.3184485287, 3.7681790315, 2.1811480769, 1.3405244945, 0.8620721141, 0.5550693289, 0.3798540708,
    0.2332364134, 0.1114188177, 0.0291671582,
  ],
  SVD: [700, 54.5, 15.886, 7.977, 4.248, 1.789, 0.981, 0.403, 0.173, 0.034, 0.002],
} as const;

export const alignYourStepsScheduler = defineNode({
  key: "AlignYourStepsScheduler",
  category: "sampling/custom_sampling/schedulers",
  description: "Sigmas of Align Your Steps, interpolated log-linearly for other step counts than 10.",
  inputs: {
    model_type: choice(["SD1", "SDXL", "SVD"]),
    steps: int({ default: 10, min: 1, max: 10000 }),
    denoise: float({ default: 1, min: 0, max: 1, step: 0.01 }),
  },
  outputs: { SIGMAS: "SIGMAS" },
  run: ({ model_type, steps, denoise }) => {
    if (denoise === 0) return { SIGMAS: Tensor.zeros([0]) };
    const taken = denoise < 1 ? roundHalfEven(steps * denoise) : steps;
    const levels = interpolated(LEVELS[model_type], steps + 1).slice(-(taken + 1));
    levels[levels.length - 1] = 0;
    return { SIGMAS: Tensor.from(levels, [levels.length]) };
  },
});

/** Levels at `count` evenly spaced points of the table, linear in their logarithm. */
function interpolated(table: readonly number[], count: number): number[] {
  return Array.from({ length: count }, (_, i) => {
    const at = (i * (table.length - 1)) / (count - 1);
    const index = Math.min(Math.floor(at), table.length - 2);
    const share = at - index;
    const [from, to] = [table[index]!, table[index + 1]!];
    return share === 0 ? from : exp(log(from) + (log(to) - log(from)) * share);
  });
}
