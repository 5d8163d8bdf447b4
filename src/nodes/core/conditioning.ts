import { inputError } from "../../base/errors.js";
import type { Conditioning } from "../../host/types.js";
import { weightedSum } from "../../tensor/ops.js";
import { cycled, joined, narrowed } from "../../tensor/parts.js";
import { Tensor } from "../../tensor/tensor.js";
import { defineNode } from "../define.js";
import { choice, conditioning, float, int, latent, mask, socket } from "../inputs.js";
import { cellOffset, inCells } from "../latents.js";

const side = () => inCells(int({ default: 64, min: 64, max: 16384, step: 8 }));

/** Input for the weight of an entry in cells that several cover. */
const areaStrength = () => float({ default: 1, min: 0, max: 10, step: 0.01 });

const share = (start: number) => float({ default: start, min: 0, max: 1, step: 0.01 });

const moment = (start: number) => float({ default: start, min: 0, max: 1, step: 0.001 });

export const conditioningNodes = [
  defineNode({
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
      if (from === undefined)
        throw inputError("input.invalid", FROM, "a conditioning with an entry", conditioning_from);
      return { CONDITIONING: conditioning_to.map((entry) => averaged(entry, from, strength)) };
    },
  }),
  defineNode({
    key: "ConditioningCombine",
    displayName: "Conditioning (Combine)",
    category: "conditioning",
    description: "The entries of two conditionings; the model's estimates for them are averaged.",
    inputs: { conditioning_1: conditioning(), conditioning_2: conditioning() },
    outputs: { CONDITIONING: "CONDITIONING" },
    run: ({ conditioning_1, conditioning_2 }) => {
      if (conditioning_1.length + conditioning_2.length <= MOST_ENTRIES)
        return { CONDITIONING: [...conditioning_1, ...conditioning_2] };
      const expected = `conditionings of at most ${MOST_ENTRIES} entries together`;
      throw inputError("input.invalid", { input: "conditioning_2" }, expected, conditioning_2);
    },
  }),
  defineNode({
    key: "ConditioningConcat",
    displayName: "Conditioning (Concat)",
    category: "conditioning",
    description: "Appends the tokens of the second conditioning's first entry to each entry of the first.",
    inputs: { conditioning_to: conditioning(), conditioning_from: conditioning() },
    outputs: { CONDITIONING: "CONDITIONING" },
    run: ({ conditioning_to, conditioning_from }) => {
      const [tokens] = conditioning_from[0] ?? [];
      if (tokens === undefined)
        throw inputError("input.invalid", FROM, "a conditioning with an entry", conditioning_from);
      for (const [own] of conditioning_to) {
        const [batch, , width] = tokenSides("conditioning_to", own);
        if (tokens.hasShape([batch, tokens.shape[1] ?? 0, width])) continue;
        throw inputError("input.invalid", FROM, `a conditioning of shape [${batch}, tokens, ${width}]`, tokens);
      }
      return { CONDITIONING: conditioning_to.map(([own, options]) => [joined([own, tokens], 1), { ...options }]) };
    },
  }),
  defineNode({
    key: "ConditioningSetArea",
    displayName: "Conditioning (Set Area)",
    category: "conditioning",
    description: "Limits a conditioning to a rectangle; sizes are in pixels.",
    inputs: {
      conditioning: conditioning(),
      width: side(),
      height: side(),
      x: cellOffset(),
      y: cellOffset(),
      strength: areaStrength(),
    },
    outputs: { CONDITIONING: "CONDITIONING" },
    run: ({ conditioning, width, height, x, y, strength }) => {
      const area = [height, width, y, x].map((pixels) => Math.floor(pixels / 8));
      return { CONDITIONING: withOptions(conditioning, { area, strength, set_area_to_bounds: false }) };
    },
  }),
  defineNode({
    key: "ConditioningSetAreaPercentage",
    displayName: "Conditioning (Set Area with Percentage)",
    category: "conditioning",
    description: "Limits a conditioning to a rectangle; sizes are shares of the picture.",
    inputs: {
      conditioning: conditioning(),
      width: share(1),
      height: share(1),
      x: share(0),
      y: share(0),
      strength: areaStrength(),
    },
    outputs: { CONDITIONING: "CONDITIONING" },
    run: ({ conditioning, width, height, x, y, strength }) => {
      const area = ["percentage", height, width, y, x];
      return { CONDITIONING: withOptions(conditioning, { area, strength, set_area_to_bounds: false }) };
    },
  }),
  defineNode({
    key: "ConditioningSetAreaStrength",
    displayName: "Conditioning (Set Area Strength)",
    category: "conditioning",
    description: "Sets the weight of a conditioning where several overlap.",
    inputs: { conditioning: conditioning(), strength: areaStrength() },
    outputs: { CONDITIONING: "CONDITIONING" },
    run: ({ conditioning, strength }) => ({ CONDITIONING: withOptions(conditioning, { strength }) }),
  }),
  defineNode({
    key: "ConditioningSetMask",
    displayName: "Conditioning (Set Mask)",
    category: "conditioning",
    description: "Limits a conditioning to a mask, optionally also to the rectangle around it.",
    inputs: {
      conditioning: conditioning(),
      mask: mask(),
      strength: areaStrength(),
      set_cond_area: choice(["default", "mask bounds"]),
    },
    outputs: { CONDITIONING: "CONDITIONING" },
    run: ({ conditioning, mask, strength, set_cond_area }) => {
      const set_area_to_bounds = set_cond_area !== "default";
      return { CONDITIONING: withOptions(conditioning, { mask, set_area_to_bounds, mask_strength: strength }) };
    },
  }),
  defineNode({
    key: "ConditioningSetTimestepRange",
    displayName: "Conditioning (Set Timestep Range)",
    category: "advanced/conditioning",
    description: "Limits a conditioning to a part of sampling, from 0, its beginning, to 1, its end.",
    inputs: { conditioning: conditioning(), start: moment(0), end: moment(1) },
    outputs: { CONDITIONING: "CONDITIONING" },
    run: ({ conditioning, start: start_percent, end: end_percent }) => ({
      CONDITIONING: withOptions(conditioning, { start_percent, end_percent }),
    }),
  }),
  defineNode({
    key: "ConditioningZeroOut",
    displayName: "Conditioning (Zero Out)",
    category: "advanced/conditioning",
    description: "The conditioning with zeros for its encodings.",
    inputs: { conditioning: conditioning() },
    outputs: { CONDITIONING: "CONDITIONING" },
    run: ({ conditioning }) => ({
      CONDITIONING: conditioning.map(([tokens, options]) => [Tensor.zeros(tokens.shape), zeroed(options)]),
    }),
  }),
  defineNode({
    key: "unCLIPConditioning",
    displayName: "unCLIP Conditioning",
    category: "conditioning",
    description: "Adds an encoded picture to a conditioning, for models that take one as a prompt.",
    inputs: {
      conditioning: conditioning(),
      clip_vision_output: socket("CLIP_VISION_OUTPUT"),
      strength: float({ default: 1, min: -10, max: 10, step: 0.01 }),
      noise_augmentation: float({ default: 0, min: 0, max: 1, step: 0.01 }),
    },
    outputs: { CONDITIONING: "CONDITIONING" },
    run: ({ conditioning, ...picture }) => {
      if (picture.strength === 0) return { CONDITIONING: conditioning };
      return {
        CONDITIONING: conditioning.map(([tokens, options]) => {
          const { unclip_conditioning: before } = options;
          const pictures = [...(Array.isArray(before) ? before : []), picture];
          return [tokens, { ...options, unclip_conditioning: pictures }];
        }),
      };
    },
  }),
  defineNode({
    key: "FluxGuidance",
    category: "advanced/conditioning/flux",
    description: "Sets the strength of the guidance that Flux models have learned; other models ignore it.",
    inputs: { conditioning: conditioning(), guidance: float({ default: 3.5, min: 0, max: 100, step: 0.1 }) },
    outputs: { CONDITIONING: "CONDITIONING" },
    run: ({ conditioning, guidance }) => ({ CONDITIONING: withOptions(conditioning, { guidance }) }),
  }),
  defineNode({
    key: "FluxDisableGuidance",
    category: "advanced/conditioning/flux",
    description: "Switches off the guidance that Flux models have learned; other models ignore it.",
    inputs: { conditioning: conditioning() },
    outputs: { CONDITIONING: "CONDITIONING" },
    run: ({ conditioning }) => ({ CONDITIONING: withOptions(conditioning, { guidance: null }) }),
  }),
  defineNode({
    key: "FluxKontextMultiReferenceLatentMethod",
    displayName: "Edit Model Reference Method",
    category: "advanced/conditioning/flux",
    description: "Sets how image-editing models place several reference latents; other models ignore it.",
    inputs: {
      conditioning: conditioning(),
      reference_latents_method: choice(["offset", "index", "uxo/uno", "index_timestep_zero"]),
    },
    outputs: { CONDITIONING: "CONDITIONING" },
    run: ({ conditioning, reference_latents_method: method }) => ({
      CONDITIONING: withOptions(conditioning, { reference_latents_method: method === "uxo/uno" ? "uxo" : method }),
    }),
  }),
  defineNode({
    key: "ReferenceLatent",
    category: "advanced/conditioning/edit_models",
    description: "Adds a reference latent for image-editing models; other models ignore it.",
    inputs: { conditioning: conditioning(), latent: latent({ optional: true }) },
    outputs: { CONDITIONING: "CONDITIONING" },
    run: ({ conditioning, latent }) => ({
      CONDITIONING: latent === undefined ? conditioning : withReferences(conditioning, [latent.samples]),
    }),
  }),
] as const;

const FROM = { input: "conditioning_from" };

/** The sides of a conditioning's tensor [B, tokens, width]. Fails with input.invalid. */
function tokenSides(input: string, tensor: Tensor): readonly [number, number, number] {
  const [batch, tokens, width, more] = tensor.shape;
  if (width !== undefined && more === undefined) return [batch!, tokens!, width];
  throw inputError("input.invalid", { input }, "entries with a tensor [B, tokens, width]", tensor);
}

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

/** x * strength + y * (1 - strength); a batch of one serves all items. */
function mixed(x: Tensor, y: Tensor, strength: number): Tensor {
  const batch = x.shape[0] === 1 ? y.shape[0]! : x.shape[0]!;
  const [a, b] = [x, y].map((side) => (side.shape[0] === 1 ? cycled(side, batch) : side)) as [Tensor, Tensor];
  if (!a.hasShape(b)) throw inputError("input.invalid", FROM, `tensors of shape [${x.shape.join(", ")}]`, y);
  return weightedSum([
    [strength, a],
    [1 - strength, b],
  ]);
}

/** Most entries of a result: a chain of these nodes can double them at each. */
const MOST_ENTRIES = 4096;

/** Options that are zeroed with the tokens. */
const ENCODINGS = ["pooled_output", "conditioning_lyrics"] as const;

function zeroed(options: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const copy = { ...options };
  for (const name of ENCODINGS) {
    const value = copy[name];
    if (value instanceof Tensor) copy[name] = Tensor.zeros(value.shape);
  }
  return copy;
}

/** Entries with shared tensors and further options. */
export const withOptions = (entries: Conditioning, options: Readonly<Record<string, unknown>>): Conditioning =>
  entries.map(([tensor, own]) => [tensor, { ...own, ...options }]);

/** Entries with further reference latents for image-editing models. */
export const withReferences = (entries: Conditioning, latents: readonly Tensor[]): Conditioning =>
  entries.map(([tensor, { reference_latents: before, ...own }]) => [
    tensor,
    { ...own, reference_latents: [...(Array.isArray(before) ? before : []), ...latents] },
  ]);
