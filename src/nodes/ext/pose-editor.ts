import { defineNode } from "../define.js";
import { text } from "../inputs.js";

export const poseEditor = defineNode({
  key: "ext poseEditor",
  description: "Holds the name of a picture drawn in an editor; returns nothing.",
  deprecated: true,
  inputs: { image: text({ default: "", strict: true }) },
  outputs: {},
  run: () => undefined,
});
