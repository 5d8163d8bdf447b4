import { basicGuider } from "./basic-guider.js";
import { cfgGuider } from "./cfg-guider.js";
import { dualCfgGuider } from "./dual-cfg-guider.js";
import { perpNegGuider } from "./perp-neg-guider.js";

export const guiderNodes = [basicGuider, cfgGuider, dualCfgGuider, perpNegGuider] as const;
