import { type SolverContext, sumOf } from "#src/host/sampling/solver.js";

/** The part of a solver's context that computes latents, each in new memory. */
export const freshMemory: Pick<SolverContext, "sum" | "next" | "combined" | "written" | "keepOnly"> = {
  sum: (terms) => sumOf(terms),
  next: (terms) => sumOf(terms),
  combined: (terms) => sumOf(terms),
  written: (write) => write(undefined),
  keepOnly: () => {},
};
