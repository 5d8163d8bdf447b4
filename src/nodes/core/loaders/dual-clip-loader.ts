import type { Clip } from "../../../host/types.js";
import { defineNode } from "../../define.js";
import { fileName, loadHostFile } from "../../host-files.js";
import { choice } from "../../inputs.js";

const FAMILIES = [
  ...["sdxl", "sd3", "flux", "hunyuan_video", "hidream", "hunyuan_image", "hunyuan_video_15", "kandinsky5"],
  ...["kandinsky5_image", "ltxv", "newbie", "ace"],
];

export const dualClipLoader = defineNode({
  key: "DualCLIPLoader",
  category: "advanced/loaders",
  description: "Loads two text encoders of the host as one clip.",
  inputs: {
    clip_name1: fileName("text_encoders"),
    clip_name2: fileName("text_encoders"),
    type: choice(FAMILIES),
    device: choice(["default", "cpu"], { optional: true, tooltip: "Not used: the host decides where it computes." }),
  },
  outputs: { CLIP: "CLIP" },
  run: async ({ clip_name1, clip_name2, type }, { host, signal }) => ({
    CLIP: joined([
      await loadHostFile("text_encoders", clip_name1, { host, signal }, { type }),
      await loadHostFile("text_encoders", clip_name2, { host, signal }, { type }),
    ]),
  }),
});

/** Order in which the encoders' tokens stand side by side, whatever the order of the files. */
const ORDER = ["l", "g"];

function joined(clips: readonly Clip[]): Clip {
  const rank = (name: string): number => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length);
  const encoders = clips.flatMap((clip) => clip.encoders).sort((a, b) => rank(a.name) - rank(b.name));
  const hasLayers = clips.every((clip) => clip.atLayer !== undefined);
  return { encoders, atLayer: hasLayers ? (layer) => joined(clips.map((clip) => clip.atLayer!(layer))) : undefined };
}
