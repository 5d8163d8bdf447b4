import { composed, type Layer, PORTER_DUFF_MODES } from "../../../tensor/image/porter-duff.js";
import { narrowed } from "../../../tensor/parts.js";
import type { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { channelsOf, fittedImage, masksOf } from "../../image-inputs.js";
import { choice, image, mask } from "../../inputs.js";

/** The first `batch` pictures and masks, cropped and resized to a size. */
function layer(image: Tensor, mask: Tensor, batch: number, height: number, width: number): Layer {
  const masks = narrowed(mask.reshape([...mask.shape, 1]), 0, 0, batch);
  return {
    image: fittedImage(narrowed(image, 0, 0, batch), height, width, "bicubic"),
    transparency: fittedImage(masks, height, width, "bicubic").reshape([batch, height, width]),
  };
}

export const porterDuffImageComposite = defineNode({
  key: "PorterDuffImageComposite",
  displayName: "Porter-Duff Image Composite",
  category: "mask/compositing",
  description: "Composites two images with a Porter-Duff operator; their masks hold transparency.",
  inputs: {
    source: image(),
    source_alpha: mask(),
    destination: image(),
    destination_alpha: mask(),
    mode: choice(PORTER_DUFF_MODES, { default: "DST" }),
  },
  outputs: [
    { name: "IMAGE", type: "IMAGE" },
    { name: "MASK", type: "MASK" },
  ],
  run: ({ source, source_alpha, destination, destination_alpha, mode }) => {
    const images = [channelsOf("source", source, 3), channelsOf("destination", destination, 3)] as const;
    const masks = [masksOf("source_alpha", source_alpha), masksOf("destination_alpha", destination_alpha)] as const;
    const batch = Math.min(...[...images, ...masks].map(({ shape }) => shape[0]!));
    const [, height, width] = images[1].shape as readonly [number, number, number];
    const top = layer(images[0], masks[0], batch, height, width);
    const { image, transparency } = composed(top, layer(images[1], masks[1], batch, height, width), mode);
    return { IMAGE: image, MASK: transparency };
  },
});
