import { inputError } from "../../../base/errors.js";
import { clampToUnit } from "../../../tensor/image/blur.js";
import type { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { masksOf, offset } from "../../image-inputs.js";
import { choice, mask } from "../../inputs.js";

/** Whether a value counts as set: it rounds to another number than 0, halves to the even one. */
const isSet = (value: number): boolean => Math.abs(value) > 0.5;

const OPERATIONS = {
  multiply: (d, s) => d * s,
  add: (d, s) => d + s,
  subtract: (d, s) => d - s,
  and: (d, s) => Number(isSet(d) && isSet(s)),
  or: (d, s) => Number(isSet(d) || isSet(s)),
  xor: (d, s) => Number(isSet(d) !== isSet(s)),
} as const satisfies Record<string, (destination: number, source: number) => number>;

/** Changes the part of `into` that the source covers at (x, y). */
function combine(into: Tensor, source: Tensor, x: number, y: number, operation: keyof typeof OPERATIONS): void {
  const [batch, height, width] = into.shape as readonly [number, number, number];
  const [sources, sourceHeight, sourceWidth] = source.shape as readonly [number, number, number];
  const combined: (destination: number, source: number) => number = OPERATIONS[operation];
  const [bottom, right] = [Math.min(y + sourceHeight, height), Math.min(x + sourceWidth, width)];
  for (let item = 0; item < batch; item++) {
    for (let row = y; row < bottom; row++) {
      let from = ((sources === 1 ? 0 : item) * sourceHeight + row - y) * sourceWidth;
      const end = (item * height + row) * width + right;
      for (let to = end - right + x; to < end; to++) into.data[to] = combined(into.data[to]!, source.data[from++]!);
    }
  }
}

const masksFor = (count: number): string => (count === 1 ? "one mask" : `1 or ${count} masks`);

export const maskComposite = defineNode({
  key: "MaskComposite",
  category: "mask",
  description: "Combines a mask with another one at a position, by arithmetic or logic, and clamps it to 0…1.",
  inputs: {
    destination: mask(),
    source: mask(),
    x: offset(),
    y: offset(),
    operation: choice(["multiply", "add", "subtract", "and", "or", "xor"]),
  },
  outputs: { MASK: "MASK" },
  run: ({ destination, source, x, y, operation }) => {
    const [result, from] = [masksOf("destination", destination).clone(), masksOf("source", source)];
    if (from.shape[0] !== 1 && from.shape[0] !== result.shape[0]) {
      throw inputError("tensor.bad-shape", { input: "source" }, masksFor(result.shape[0]!), source);
    }
    combine(result, from, x, y, operation);
    return { MASK: clampToUnit(result) };
  },
});
