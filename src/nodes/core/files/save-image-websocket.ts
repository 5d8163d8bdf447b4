import { join } from "node:path";
import { defineNode } from "../../define.js";
import { image } from "../../inputs.js";
import { TEMPORARY } from "./preview-image.js";
import { savePictures } from "./save-image.js";

export const saveImageWebsocket = defineNode({
  key: "SaveImageWebsocket",
  category: "api/image",
  description:
    "Saves each image as a temporary PNG file, without the graph; the service also sends it through the WebSocket.",
  inputs: { images: image() },
  outputs: {},
  outputNode: true,
  writesFiles: true,
  hasUi: true,
  run: ({ images }, context) => {
    const folder = join(context.folders.output, TEMPORARY);
    const texts = { prompt: undefined, extraPnginfo: undefined };
    return savePictures({ images, prefix: "websocket", folder, type: "temp", isPng: true, ...texts }, context);
  },
});
