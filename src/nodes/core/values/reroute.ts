import { defineNode } from "../../define.js";
import { any } from "../../inputs.js";

// the editor resolves it; graphs that programs wrote hold it
export const reroute = defineNode({
  key: "Reroute",
  category: "utils",
  description: "A bend of a link: its value, passed on as it is.",
  inputs: { "": any() },
  outputs: [{ name: "", type: "*" }],
  run: ({ "": value }) => [value],
});
