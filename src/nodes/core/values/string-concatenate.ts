import { defineNode } from "../../define.js";
import { text } from "../../inputs.js";

export const stringConcatenate = defineNode({
  key: "StringConcatenate",
  displayName: "Concatenate",
  category: "utils/string",
  description: "Two texts with a third one between them.",
  inputs: {
    string_a: text({ multiline: true }),
    string_b: text({ multiline: true }),
    delimiter: text({ default: "" }),
  },
  outputs: { STRING: "STRING" },
  run: ({ string_a, string_b, delimiter }) => ({ STRING: `${string_a}${delimiter}${string_b}` }),
});
