import { defineNode } from "../../define.js";
import { text } from "../../inputs.js";

export const note = defineNode({
  key: "Note",
  category: "utils",
  description: "A remark beside a graph, without effect.",
  inputs: { text: text({ optional: true, multiline: true, default: "" }) },
  outputs: {},
  run: () => [],
});
