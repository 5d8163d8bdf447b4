import { defineNode } from "../../define.js";
import { text } from "../../inputs.js";

export const primitiveString = defineNode({
  key: "PrimitiveString",
  displayName: "String",
  category: "utils/primitive",
  description: "A text.",
  inputs: { value: text() },
  outputs: { STRING: "STRING" },
  run: ({ value }) => ({ STRING: value }),
});
