import type { Sampler } from "../../../tensor/sampling/sigmas.js";
import type { Solver } from "../solver.js";
import { MULTISTEP } from "./multistep/index.js";

/** The solver of each sampler's name. */
export const SOLVERS: Partial<Record<Sampler, Solver>> = { ...MULTISTEP };
