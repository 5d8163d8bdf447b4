import { float, int } from "../../inputs.js";

/** Number of steps of a schedule. */
export const steps = () => int({ default: 20, min: 1, max: 10000 });

const level = (value: number) => float({ default: value, min: 0, max: 5000, step: 0.01, round: false });

/** Ends of a schedule, SD 1.x's by default. */
export const ends = () => ({ sigma_max: level(14.614642), sigma_min: level(0.0291675) });
