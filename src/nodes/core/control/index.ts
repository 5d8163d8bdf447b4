import { clipVisionEncode } from "./clip-vision-encode.js";
import { controlNetApply } from "./controlnet-apply.js";
import { controlNetApplyAdvanced } from "./controlnet-apply-advanced.js";
import { controlNetApplySd3 } from "./controlnet-apply-sd3.js";
import { gligenTextBoxApply } from "./gligen-textbox-apply.js";
import { imageUpscaleWithModel } from "./image-upscale-with-model.js";
import { qwenImageDiffsynthControlnet } from "./qwen-image-diffsynth-controlnet.js";
import { setUnionControlNetType } from "./set-union-controlnet-type.js";
import { styleModelApply } from "./style-model-apply.js";
import { zImageFunControlnet } from "./z-image-fun-controlnet.js";

export const controlNodes = [
  controlNetApply,
  controlNetApplyAdvanced,
  controlNetApplySd3,
  setUnionControlNetType,
  qwenImageDiffsynthControlnet,
  zImageFunControlnet,
  clipVisionEncode,
  styleModelApply,
  gligenTextBoxApply,
  imageUpscaleWithModel,
] as const;
