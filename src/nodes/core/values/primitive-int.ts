import { defineNode } from "../../define.js";
import { int } from "../../inputs.js";

export const primitiveInt = defineNode({
  key: "PrimitiveInt",
  displayName: "Int",
  category: "utils/primitive",
  description: "A whole number.",
  inputs: { value: int() },
  outputs: { INT: "INT" },
  run: ({ value }) => ({ INT: value }),
});
