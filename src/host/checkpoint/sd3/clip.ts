import { LatentkitError } from "../../../base/errors.js";
import { joined, narrowed } from "../../../tensor/parts.js";
import { Tensor } from "../../../tensor/tensor.js";
import type { Conditioning } from "../../types.js";
import type { Encodings, JoinedFamily } from "../text-encoder/joined-clip.js";

/** Numbers of a token of CLIP-L and of CLIP-G, which are zeros where one of them is missing. */
const WIDTHS = { l: 768, g: 1280 } as const;

/**
 * CLIP's encoders side by side make the first tokens, T5 those after them. Without T5 the model fills their numbers with
 * zeros.
 */
export const SD3_CLIP: JoinedFamily = {
  name: "SD 3",
  type: "sd3",
  encoders: ["l", "g", "t5"],
  isPartial: true,
  fewest: 77,
  emptyEnds: true,
  // the layer before the last, without a final norm
  clipFamily: "sdxl",
  hasLayers: true,
  combine,
  pooledWidth: ({ l = WIDTHS.l, g = WIDTHS.g }) => l + g,
};

function combine({ l, g, t5 }: Encodings): Conditioning[number] {
  const first = l === undefined && g === undefined ? undefined : sideBySide(l?.[0], g?.[0]);
  const pooled_output = joined([pooledOf(l, "l"), pooledOf(g, "g")], 1);
  if (first === undefined && t5 === undefined)
    throw new LatentkitError("value.invalid", "Prompt: expected a text for one of SD 3's encoders, received none.");
  if (first === undefined || t5 === undefined) return [(first ?? t5)!, { pooled_output }];
  return [joined([widened(first, t5.shape[2]!), t5], 1), { pooled_output }];
}

/** The tokens of both, as many as the shorter has, with zeros for CLIP-L if it is missing. */
function sideBySide(l: Tensor | undefined, g: Tensor | undefined): Tensor {
  const length = Math.min(...[l, g].flatMap((tokens) => tokens?.shape[1] ?? []));
  const cut = (tokens: Tensor): Tensor => narrowed(tokens, 1, 0, length);
  if (g === undefined) return cut(l!);
  return joined([l === undefined ? Tensor.zeros([1, length, WIDTHS.l]) : cut(l), cut(g)], 2);
}

function widened(tokens: Tensor, width: number): Tensor {
  const [items, length, own] = tokens.shape as [number, number, number];
  if (own > width) {
    const message = `Text encoders of SD 3: expected a T5 of at least ${own} numbers of a token, as CLIP's have, received ${width}.`;
    throw new LatentkitError("value.invalid", message);
  }
  return own === width ? tokens : joined([tokens, Tensor.zeros([items, length, width - own])], 2);
}

function pooledOf(entry: Conditioning[number] | undefined, name: keyof typeof WIDTHS): Tensor {
  const pooled = entry?.[1].pooled_output;
  return pooled instanceof Tensor ? pooled : Tensor.zeros([1, WIDTHS[name]]);
}
