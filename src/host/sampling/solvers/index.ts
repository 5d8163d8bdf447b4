import type { Sampler } from "../../../tensor/sampling/sigmas.js";
import type { Solver } from "../solver.js";

/** The solver of each sampler's name. */
export const SOLVERS: Partial<Record<Sampler, Solver<never>>> = {};
