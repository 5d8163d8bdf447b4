import { join } from "node:path";
import { root } from "../folders.js";
import { goldenText } from "../golden-file.js";
import type { Shapes } from "./full-size.js";

const ALL: Readonly<Record<string, Shapes>> = JSON.parse(goldenText(join(root, "test/golden/models-z-qwen/keys.json")));

/** Keys and shapes of a full-size file, by its name's beginning: "z_image", "qwen3_4b", "flux vae" … */
export function flowShapes(name: string): Shapes {
  const found = Object.keys(ALL).find((key) => key.startsWith(`${name} (`));
  if (found === undefined) throw new Error(`no shapes of ${name}`);
  return ALL[found]!;
}
