import { describe, LatentkitError, suggest } from "../../base/errors.js";
import { SAMPLERS } from "../../tensor/sampling/sigmas.js";
import type { SamplerChoice, Solver } from "./solver.js";
import { SOLVERS } from "./solvers/index.js";

/** A solver with all its options, ready to run. */
export interface ChosenSolver {
  readonly solver: Solver;
  readonly options: object;
  /** Whether ancestral noise has the run's seed itself, in place of seed + 1. */
  readonly sameSeed: boolean;
}

/**
 * The solver of a choice, with the defaults of the options that it leaves out. `ancestral_seed` is an option of every
 * sampler: "next", or "same" for the noise of older versions of ComfyUI. Fails with value.invalid.
 */
export function chosenSolver({ sampler, options }: SamplerChoice): ChosenSolver {
  const solver = Object.hasOwn(SOLVERS, sampler) ? SOLVERS[sampler] : undefined;
  if (solver === undefined) throw notOneOf("sampler", sampler, SAMPLERS);
  const { ancestral_seed = "next", ...own } = options;
  if (ancestral_seed !== "next" && ancestral_seed !== "same")
    throw notOneOf(`sampler ${sampler}, ancestral_seed`, ancestral_seed, ["next", "same"]);
  const defaults: Readonly<Record<string, unknown>> = { ...solver.options };
  for (const [name, value] of Object.entries(own)) {
    if (!Object.hasOwn(defaults, name)) throw notOneOf(`sampler ${sampler}, option`, name, Object.keys(defaults));
    if (value === undefined || fits(value, defaults[name])) continue;
    const expected = defaults[name] === null ? "a function" : `a ${typeof defaults[name]}`;
    const message = `sampler ${sampler}, ${name}: expected ${expected}, received ${describe(value)}.`;
    throw new LatentkitError("value.invalid", message);
  }
  const set = Object.entries(own).filter(([, value]) => value !== undefined);
  return {
    solver,
    options: { ...defaults, ...Object.fromEntries(set) },
    sameSeed: ancestral_seed === "same",
  };
}

/** Whether a value has the type of a default: null stands for a function, and an option without one takes any. */
function fits(value: unknown, standard: unknown): boolean {
  if (standard === null) return value === null || typeof value === "function";
  return standard === undefined || (typeof value === typeof standard && !Number.isNaN(value));
}

function notOneOf(subject: string, received: unknown, names: readonly string[]): LatentkitError {
  const { suggestion, hint } = suggest(received, names);
  const expected = names.length === 0 ? "none" : `one of ${names.join(", ")}`;
  const message = `${subject}: expected ${expected}, received ${describe(received)}.${hint}`;
  return new LatentkitError("value.invalid", message, { suggestion });
}
