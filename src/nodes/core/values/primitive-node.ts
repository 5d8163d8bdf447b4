import { defineNode } from "../../define.js";
import { any } from "../../inputs.js";

// the editor resolves it; graphs that programs wrote hold it
export const primitiveNode = defineNode({
  key: "PrimitiveNode",
  displayName: "Primitive",
  category: "utils",
  description: "A value of the editor, passed on as it is.",
  inputs: { value: any() },
  outputs: { value: "*" },
  run: ({ value }) => ({ value }),
});
