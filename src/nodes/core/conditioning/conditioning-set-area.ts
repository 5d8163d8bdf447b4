import { inCells } from "../../cells.js";
import { withOptions } from "../../conditioning.js";
import { defineNode } from "../../define.js";
import { conditioning, float, int } from "../../inputs.js";

const side = () => inCells(int({ default: 64, min: 64, max: 16384, step: 8 }));
const offset = () => inCells(int({ default: 0, min: 0, max: 16384, step: 8 }));
/** Input for the weight of entries where several cover a cell. */
export const areaStrength = () => float({ default: 1, min: 0, max: 10, step: 0.01 });

export const conditioningSetArea = defineNode({
  key: "ConditioningSetArea",
  displayName: "Conditioning (Set Area)",
  category: "conditioning",
  description: "Limits a conditioning to a rectangle; sizes are in pixels.",
  inputs: {
    conditioning: conditioning(),
    width: side(),
    height: side(),
    x: offset(),
    y: offset(),
    strength: areaStrength(),
  },
  outputs: { CONDITIONING: "CONDITIONING" },
  run: ({ conditioning, width, height, x, y, strength }) => {
    const area = [height, width, y, x].map((pixels) => Math.floor(pixels / 8));
    return { CONDITIONING: withOptions(conditioning, { area, strength, set_area_to_bounds: false }) };
  },
});
