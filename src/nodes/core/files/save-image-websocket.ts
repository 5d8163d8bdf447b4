import { join } from "node:path";
import { defineNode } from "../../define.js";
import { image } from "../../inputs.js";
import { TEMPORARY } from "./preview-image.js";
import { savePictures } from "./save-image.js";

export const saveImageWebsocket = defineNode({
  key: "SaveImageWebsocket",
  category: "api/image",
  description:
    "Saves each image as PreviewImage does, without the graph; the service also sends it through the WebSocket.",
  inputs: { images: image() },
  outputs: {},
  outputNode: true,
  writesFiles: true,
  hasUi: true,
  run: ({ images }, context) => {
    const folder = join(context.folders.output, TEMPORARY);
    const sent = {
      images,
      prefix: "websocket",
      folder,
      type: "temp",
      prompt: undefined,
      extraPnginfo: undefined,
    } as const;
    return savePictures(sent, context);
  },
});
