import { defineNode } from "../../define.js";
import { boolean } from "../../inputs.js";

export const primitiveBoolean = defineNode({
  key: "PrimitiveBoolean",
  displayName: "Boolean",
  category: "utils/primitive",
  description: "True or false.",
  inputs: { value: boolean() },
  outputs: { BOOLEAN: "BOOLEAN" },
  run: ({ value }) => ({ BOOLEAN: value }),
});
