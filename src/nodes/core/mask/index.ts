import { invertMask } from "./invert-mask.js";
import { solidMask } from "./solid-mask.js";

export const maskNodes = [invertMask, solidMask] as const;
