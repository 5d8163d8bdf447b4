import { defineNode } from "../../define.js";
import { float } from "../../inputs.js";

export const primitiveFloat = defineNode({
  key: "PrimitiveFloat",
  displayName: "Float",
  category: "utils/primitive",
  description: "A number.",
  inputs: { value: float({ min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER }) },
  outputs: { FLOAT: "FLOAT" },
  run: ({ value }) => ({ FLOAT: value }),
});
