import { defineNode } from "../../define.js";
import { text } from "../../inputs.js";

export const primitiveStringMultiline = defineNode({
  key: "PrimitiveStringMultiline",
  displayName: "String (Multiline)",
  category: "utils/primitive",
  description: "A text of several lines.",
  inputs: { value: text({ multiline: true }) },
  outputs: { STRING: "STRING" },
  run: ({ value }) => ({ STRING: value }),
});
