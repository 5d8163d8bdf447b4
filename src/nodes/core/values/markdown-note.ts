import { defineNode } from "../../define.js";
import { text } from "../../inputs.js";

export const markdownNote = defineNode({
  key: "MarkdownNote",
  displayName: "Markdown Note",
  category: "utils",
  description: "A remark in Markdown beside a graph, without effect.",
  inputs: { text: text({ optional: true, multiline: true, default: "" }) },
  outputs: {},
  run: () => [],
});
