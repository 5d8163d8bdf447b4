import { defineNode } from "../../define.js";
import { lacking } from "../../host-files.js";
import { choice } from "../../inputs.js";
import { controlNet } from "./controlled.js";

/** Kinds of pictures; those after the first are numbered from 0. */
const TYPES = [
  ...["auto", "openpose", "depth", "hed/pidi/scribble/ted", "canny/lineart/anime_lineart/mlsd", "normal", "segment"],
  ...["tile", "repaint"],
];

export const setUnionControlNetType = defineNode({
  key: "SetUnionControlNetType",
  category: "conditioning/controlnet",
  description: "Sets the kind of picture for a ControlNet that takes several.",
  inputs: { control_net: controlNet(), type: choice(TYPES) },
  outputs: { CONTROL_NET: "CONTROL_NET" },
  run: ({ control_net, type }, { host }) => {
    if (control_net.ofType === undefined)
      throw lacking(host, "no types for this ControlNet, which takes only one kind of picture");
    return { CONTROL_NET: control_net.ofType(TYPES.indexOf(type) - 1) };
  },
});
