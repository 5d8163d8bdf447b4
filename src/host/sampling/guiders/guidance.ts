import { basicGuidance, cfgGuidance, type GuidanceMethod } from "./cfg.js";
import { dualGuidance } from "./dual-cfg.js";
import type { Guider } from "./guider.js";
import { perpNegGuidance } from "./perp-neg.js";

/** The method of a guider. */
export function guidanceOf(guider: Guider): GuidanceMethod {
  switch (guider.kind) {
    case "cfg":
      return cfgGuidance(guider);
    case "basic":
      return basicGuidance(guider);
    case "dual-cfg":
      return dualGuidance(guider);
    case "perp-neg":
      return perpNegGuidance(guider);
  }
}
