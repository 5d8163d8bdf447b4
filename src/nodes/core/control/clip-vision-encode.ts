import type { ClipVision } from "../../../host/types.js";
import { firstChannels } from "../../../tensor/channels.js";
import { defineNode } from "../../define.js";
import { choice, image, socket } from "../../inputs.js";

export const clipVisionEncode = defineNode({
  key: "CLIPVisionEncode",
  displayName: "CLIP Vision Encode",
  category: "conditioning",
  description: "Encodes the colours of a picture, cut to its middle square or squeezed into one.",
  inputs: { clip_vision: socket<ClipVision>("CLIP_VISION"), image: image(), crop: choice(["center", "none"]) },
  outputs: { CLIP_VISION_OUTPUT: "CLIP_VISION_OUTPUT" },
  run: async ({ clip_vision, image, crop }, { signal }) => ({
    CLIP_VISION_OUTPUT: await clip_vision.encode(firstChannels(image, 3), crop, signal),
  }),
});
