import { inputError } from "../../../base/errors.js";
import type { Conditioning } from "../../../host/types.js";
import { weightedSum } from "../../../tensor/ops.js";
import { cycled, joined, narrowed } from "../../../tensor/parts.js";
import { Tensor } from "../../../tensor/tensor.js";
import { defineNode } from "../../define.js";
import { conditioning, float } from "../../inputs.js";

const FROM = { input: "conditioning_from" };

export const conditioningAverage = defineNode({
  key: "ConditioningAverage",
  displayName: "Conditioning (Average)",
  category: "conditioning",
  description: "Mixes each entry of the first conditioning with the second's first entry, token by token.",
  inputs: {
    conditioning_to: conditioning(),
    conditioning_from: conditioning(),
    conditioning_to_strength: float({ default: 1, min: 0, max: 1, step: 0.01 }),
  },
  outputs: { CONDITIONING: "CONDITIONING" },
  run: ({ conditioning_to, conditioning_from, conditioning_to_strength: strength }) => {
    const from = conditioning_from[0];
    if (from === undefined) throw inputError("input.invalid", FROM, "a conditioning with an entry", conditioning_from);
    return { CONDITIONING: conditioning_to.map((entry) => averaged(entry, from, strength)) };
  },
});

function averaged([own, options]: Conditioning[number], [from, others]: Conditioning[number], strength: number) {
  const entry: Conditioning[number] = [mixed(own, withTokens(from, own), strength), { ...options }];
  const { pooled_output: other } = others;
  if (!(other instanceof Tensor)) return entry;
  const { pooled_output: pooled } = options;
  entry[1].pooled_output = pooled instanceof Tensor ? mixed(pooled, other, strength) : other;
  return entry;
}

/** The first tokens, as many as the other has; missing ones are zeros. */
function withTokens(x: Tensor, other: Tensor): Tensor {
  const [, tokens, width] = tokenSides("conditioning_to", other);
  const [batch = 0, own = 0, ownWidth] = x.shape;
  if (x.shape.length !== 3 || ownWidth !== width)
    throw inputError("input.invalid", FROM, `a conditioning [B, tokens, ${width}]`, x);
  if (own >= tokens) return narrowed(x, 1, 0, tokens);
  return joined([x, Tensor.zeros([batch, tokens - own, width])], 1);
}

/** The sides of a conditioning's tensor [B, tokens, width]. Fails with input.invalid. */
export function tokenSides(input: string, tensor: Tensor): readonly [number, number, number] {
  const [batch, tokens, width, more] = tensor.shape;
  if (width !== undefined && more === undefined) return [batch!, tokens!, width];
  throw inputError("input.invalid", { input }, "entries with a tensor [B, tokens, width]", tensor);
}

/** x * strength + y * (1 - strength); a batch of one is that of all. */
function mixed(x: Tensor, y: Tensor, strength: number): Tensor {
  const batch = x.shape[0] === 1 ? y.shape[0]! : x.shape[0]!;
  const [a, b] = [x, y].map((side) => (side.shape[0] === 1 ? cycled(side, batch) : side)) as [Tensor, Tensor];
  if (!a.hasShape(b)) throw inputError("input.invalid", FROM, `tensors of shape [${x.shape.join(", ")}]`, y);
  return weightedSum([
    [strength, a],
    [1 - strength, b],
  ]);
}
