import { inputError } from "../../../base/errors.js";
import { encodePlain } from "../../../host/prompt/index.js";
import { Tensor } from "../../../tensor/tensor.js";
import { CELL, inCells } from "../../cells.js";
import { defineNode } from "../../define.js";
import { clip, conditioning, int, socket, text } from "../../inputs.js";

const side = (value: number, min: number) => inCells(int({ default: value, min, max: 16384, step: CELL }));

export const gligenTextBoxApply = defineNode({
  key: "GLIGENTextBoxApply",
  category: "conditioning/gligen",
  description: "Places a prompt in a box of the picture.",
  inputs: {
    conditioning_to: conditioning(),
    clip: clip(),
    gligen_textbox_model: socket<object>("GLIGEN"),
    text: text({ multiline: true, dynamicPrompts: true }),
    width: side(64, CELL),
    height: side(64, CELL),
    x: side(0, 0),
    y: side(0, 0),
  },
  outputs: { CONDITIONING: "CONDITIONING" },
  run: async ({ conditioning_to, clip, gligen_textbox_model: model, text, ...box }, { log }) => {
    const pooled = (await encodePlain(clip, text, log))[0]?.[1].pooled_output;
    if (!(pooled instanceof Tensor))
      throw inputError("value.invalid", { input: "clip" }, "a clip with a pooled output", clip);
    const cells = (pixels: number): number => Math.floor(pixels / CELL);
    const { width, height, x, y } = box;
    const own = { pooled, height: cells(height), width: cells(width), y: cells(y), x: cells(x) };
    return {
      CONDITIONING: conditioning_to.map(([tokens, options]) => {
        const { boxes } = (options.gligen ?? {}) as { boxes?: unknown };
        return [tokens, { ...options, gligen: { model, boxes: [...(Array.isArray(boxes) ? boxes : []), own] } }];
      }),
    };
  },
});
