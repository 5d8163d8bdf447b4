import { LatentkitError } from "../../../base/errors.js";
import { defineNode } from "../../define.js";
import { clip, int } from "../../inputs.js";

export const clipSetLastLayer = defineNode({
  key: "CLIPSetLastLayer",
  displayName: "CLIP Set Last Layer",
  category: "conditioning",
  description: "Makes a clip stop at an earlier layer, counted from the end; -1 is the last.",
  inputs: { clip: clip(), stop_at_clip_layer: int({ default: -1, min: -24, max: -1, step: 1 }) },
  outputs: { CLIP: "CLIP" },
  run: ({ clip, stop_at_clip_layer: layer }, { host }) => {
    if (clip.atLayer !== undefined) return { CLIP: clip.atLayer(layer) };
    if (layer === -1) return { CLIP: clip };
    const message = `input "clip": expected a clip with layer ${layer}; the clip of host "${host.name}" has only its last layer.`;
    throw new LatentkitError("host.missing", message, { input: "clip" });
  },
});
