import { describe, LatentkitError } from "../../../base/errors.js";
import { firstChannels } from "../../../tensor/channels.js";
import { weightedSum } from "../../../tensor/ops.js";
import { cycled, joined, narrowed } from "../../../tensor/parts.js";
import { middleOf, resizeImage, resizeLatent } from "../../../tensor/resize.js";
import { roundHalfEven } from "../../../tensor/rounding.js";
import { Tensor } from "../../../tensor/tensor.js";
import { intoModel } from "../../sampling/latent-space.js";
import type { ModelPatch, SamplingRun, Vae } from "../../types.js";
import { add, linear } from "../networks/layers.js";
import { type Rotation, rotationInputs } from "../networks/transformer-layers.js";
import type { Value } from "../onnx/graph.js";
import { type ModelHeader, type Part, PartShapes, unwrappedFile } from "../recognition/part.js";
import { foreignKind } from "../recognition/refusal.js";
import type { ModelPart } from "../session/model-part.js";
import type { Network } from "../weights/network.js";
import { unsupported } from "../weights/stored.js";
import { type ZImageBlockConfig, zImageBlock } from "./block.js";

/** A model patch of a file; models of the same host take it. */
export class CheckpointModelPatch {
  constructor(readonly part: ModelPart<ZImageControlConfig>) {}
}

/** A control net with its pictures. */
export interface ZImageControlInput {
  readonly part: ModelPart<ZImageControlConfig>;
  readonly vae: Vae;
  readonly strength: number;
  /** [B, H, W, C] in 0…1: outlines, depths, poses. */
  readonly image?: Tensor;
  /** [B, H, W, C] in 0…1: the picture to repaint. */
  readonly inpaintImage?: Tensor;
  /** [B, H, W]: 1 where it is repainted. */
  readonly mask?: Tensor;
}

/** Nodes that add a control net. */
export const CONTROL_NODES: readonly string[] = ["QwenImageDiffsynthControlnet", "ZImageFunControlnet"];

/** The control net of a node's inputs, for a transformer. Fails with host.missing and value.invalid. */
export function controlOf({ node, inputs }: ModelPatch, label: string, width: number): ZImageControlInput {
  const { model_patch: patch, vae, image, inpaint_image, mask, strength } = inputs;
  if (!(patch instanceof CheckpointModelPatch))
    throw new LatentkitError("host.missing", 'host "checkpoint" cannot run a model patch that another host loaded.');
  if (patch.part.config.width !== width)
    throw new LatentkitError("value.invalid", `${patch.part.label} is for a different model family than ${label}.`);
  if (image === undefined && inpaint_image === undefined)
    throw new LatentkitError("value.invalid", `${node}: expected an image or an inpaint_image, received neither.`);
  const control = { part: patch.part, vae: vae as Vae, strength: strength as number };
  const pictures = { image, inpaintImage: inpaint_image, mask } as Pick<ZImageControlInput, "image">;
  return { ...control, ...pictures };
}

/** Pixels along a side of a latent's cell. */
const CELL = 8;
const COLOURS = 3;
const GREY = 0.5;
/** Channels of nets that take only a control picture. */
const PLAIN_CHANNELS = 16;

/** Inputs of the control nets of a run: latents in the size of a call, and strengths. */
export class ZImageControls {
  readonly #controls: readonly ZImageControlInput[];
  readonly #run: SamplingRun;
  /** By the call's size: the same tensors at each step. */
  readonly #inputs = new Map<string, Promise<Readonly<Record<string, Tensor>>>>();

  constructor(controls: readonly ZImageControlInput[], run: SamplingRun) {
    this.#controls = controls;
    this.#run = run;
  }

  /** `control_N` [1 or items, channels, h, w], of even sides, and `strength_N` for a call on latents [items, C, h, w]. */
  of({ shape }: Tensor): Promise<Readonly<Record<string, Tensor>>> {
    const [items, , rows, columns] = shape as [number, number, number, number];
    const key = `${items} ${rows} ${columns}`;
    const inputs = this.#inputs.get(key) ?? this.#inputsFor(items, rows, columns);
    this.#inputs.set(key, inputs);
    return inputs;
  }

  async #inputsFor(items: number, rows: number, columns: number): Promise<Readonly<Record<string, Tensor>>> {
    const batch = this.#run.latent.shape[0]!;
    const inputs: Record<string, Tensor> = {};
    for (const [index, control] of this.#controls.entries()) {
      const latent = evenSides(await this.#encode(control, rows, columns));
      inputs[`control_${index}`] = latent.shape[0] === 1 ? latent : cycled(cycled(latent, batch), items);
      inputs[`strength_${index}`] = Tensor.full([1], control.strength);
    }
    return inputs;
  }

  /** The input of one net [n, channels, h, w]. */
  async #encode(control: ZImageControlInput, rows: number, columns: number): Promise<Tensor> {
    const { part, vae, image, inpaintImage, mask } = control;
    const [height, width] = [rows * CELL, columns * CELL];
    const sized = (picture: Tensor): Tensor =>
      resizeImage(firstChannels(picture, COLOURS), { method: "area", height, width, crop: "center" });
    const encoded = async (picture: Tensor): Promise<Tensor> =>
      intoModel(this.#latent(part.label, await vae.encode(picture)), this.#run.sampling);
    const own = image && (await encoded(sized(image)));
    if (part.config.channels === PLAIN_CHANNELS) {
      if (own !== undefined) return own;
      throw new LatentkitError("value.invalid", `${part.label}: expected an image, received only an inpaint_image.`);
    }
    const picture = inpaintImage === undefined ? Tensor.full([1, height, width, COLOURS], GREY) : sized(inpaintImage);
    const hidden = await encoded(mask === undefined ? picture : withoutMasked(picture, mask));
    const kept = mask === undefined ? Tensor.zeros([1, 1, rows, columns]) : keptCells(mask, rows, columns);
    const control16 = own ?? intoModel(Tensor.full(hidden.shape, GREY), this.#run.sampling);
    const count = Math.max(...[control16, kept, hidden].map(({ shape }) => shape[0]!));
    return joined(
      [control16, kept, hidden].map((part) => cycled(part, count)),
      1,
    );
  }

  #latent(label: string, latent: Tensor): Tensor {
    if (latent.shape[1] === PLAIN_CHANNELS) return latent;
    const expected = `a VAE with ${PLAIN_CHANNELS} latent channels, such as Z-Image's`;
    const message = `${label}: expected ${expected}, received one that encodes ${describe(latent)}.`;
    throw new LatentkitError("value.invalid", message);
  }
}

/** A picture [B, C, h, w] whose first row is repeated after an odd number of rows; likewise columns. */
export function evenSides(x: Tensor): Tensor {
  const even = (picture: Tensor, axis: number): Tensor =>
    picture.shape[axis]! % 2 === 0 ? picture : joined([picture, narrowed(picture, axis, 0, 1)], axis);
  return even(even(x, 2), 3);
}

/** A picture [B, H, W, 3] that is grey where the mask is above a half. */
function withoutMasked(picture: Tensor, mask: Tensor): Tensor {
  const [batch, height, width] = picture.shape as [number, number, number];
  const planes = resizeLatent(kept(mask), { method: "bilinear", height, width, crop: "center" });
  const all = cycled(planes, batch);
  const out = Tensor.unfilled(picture.shape);
  for (let i = 0; i < out.size; i++)
    out.data[i] = (picture.data[i]! - GREY) * roundHalfEven(all.data[Math.floor(i / COLOURS)]!) + GREY;
  return out;
}

/** 1 in the cells [n, 1, h, w] that stay: those of the nearest pixel above and to the left. */
function keptCells(mask: Tensor, rows: number, columns: number): Tensor {
  const middle = middleOf("mask", kept(mask), 2, rows, columns);
  const [items, , height, width] = middle.shape as [number, number, number, number];
  const cells = Tensor.unfilled([items, 1, rows, columns]);
  for (let i = 0; i < cells.size; i++) {
    const [item, row, column] = [Math.floor(i / (rows * columns)), Math.floor(i / columns) % rows, i % columns];
    const [y, x] = [Math.floor((row * height) / rows), Math.floor((column * width) / columns)];
    cells.data[i] = middle.data[(item * height + y) * width + x]!;
  }
  return cells;
}

/** 1 - mask, [n, 1, H, W]. */
function kept(mask: Tensor): Tensor {
  const [items, height, width] = mask.shape as [number, number, number];
  return weightedSum([
    [1, Tensor.full([items, 1, height, width], 1)],
    [-1, mask.reshape([items, 1, height, width])],
  ]);
}

/** Sizes of a control net of Z-Image, which runs beside the transformer's layers. */
interface ZImageControlConfig extends Omit<ZImageBlockConfig, "layout"> {
  /** 16 of the control picture's latent, or 33: these, a mask and the latent of a picture to repaint. */
  readonly channels: number;
  readonly layers: number;
  readonly refiners: number;
  /** Whether the refiners run beside those of the transformer and guide them, or only before its layers. */
  readonly guidesRefiners: boolean;
}

/** A control net and where its weights come from. */
export interface ZImageControl {
  readonly network: Network;
  readonly config: ZImageControlConfig;
}

/** The inputs of a control net, as values of the graph, with the sizes of the transformer beside it. */
interface ControlInputs {
  readonly config: Pick<ZImageBlockConfig, "width"> & { readonly layers: number };
  /** Patches of the control's latents [B or 1, L, 4 · channels]. */
  readonly tokens: Value;
  /** [1] */
  readonly strength: Value;
  readonly time: Value;
  /** Rotation of the picture's tokens, without padding. */
  readonly rotation: Rotation;
}

/** Values that a control net adds to the picture's tokens after a block of the transformer; undefined: none. */
interface ControlBranch {
  /** `x` [B, L, C]: the tokens as they entered the first refiner. */
  besideRefiner(index: number, x: Value): Value | undefined;
  /** `x` [B, L, C]: the tokens as they entered the first layer. */
  besideLayer(index: number, x: Value): Value | undefined;
}

// decisions: A ControlNet has a session of its own
/** Writes a control net. Source: Z-Image Fun ControlNet (VideoX-Fun), by the facts of its files. */
export function zImageControl({ network, config }: ZImageControl, inputs: ControlInputs): ControlBranch {
  const { graph } = network;
  const { tokens, strength, time, rotation } = inputs;
  const { width, channels, layers, refiners, guidesRefiners } = config;
  const keys = { ...config, layout: "diffusers" } as const;
  let state = linear(network, "control_all_x_embedder.2-1", tokens, [4 * channels, width]);
  const step = (key: string): void => {
    state = zImageBlock(network, key, state, keys, rotation, time);
  };
  /** One block; the first one also adds the input of the transformer's. */
  const guided = (key: string, isFirst: boolean, x: Value): Value => {
    if (isFirst) state = add(graph, linear(network, `${key}.before_proj`, state, [width, width]), x);
    step(key);
    return graph.node("Mul", [linear(network, `${key}.after_proj`, state, [width, width]), strength]);
  };
  if (!guidesRefiners) for (let index = 0; index < refiners; index++) step(`control_noise_refiner.${index}`);
  const stride = Math.max(1, roundHalfEven(inputs.config.layers / layers));
  return {
    besideRefiner: (index, x) =>
      guidesRefiners && index < refiners ? guided(`control_noise_refiner.${index}`, index === 0, x) : undefined,
    besideLayer(index, x) {
      const own = index / stride;
      if (!Number.isInteger(own) || own >= layers) return undefined;
      return guided(`control_layers.${own}`, own === 0, x);
    },
  };
}

/**
 * Writes only a control net, for a transformer of this many layers. Inputs: control [B, L, 4 · channels], strength [1],
 * time [B, timeWidth], x [B, L, width], and the rotations `image_cos` and `image_sin`. Outputs: `refiner_N` and `layer_N`.
 */
export function buildZImageControl(network: Network, config: ZImageControlConfig): void {
  const { graph } = network;
  const { width, channels, headSize, layers, refiners } = config;
  const rotation = rotationInputs(graph, "image", "L", headSize, "neighbours");
  const branch = zImageControl(
    { network, config },
    {
      config,
      tokens: graph.input("control", "float", ["B", "L", 4 * channels]),
      strength: graph.input("strength", "float", [1]),
      time: graph.input("time", "float", ["B", config.timeWidth]),
      rotation,
    },
  );
  const x = graph.input("x", "float", ["B", "L", width]);
  const write = (name: string, value: Value | undefined): void => {
    if (value !== undefined) graph.output(value, name, "float", ["B", "L", width]);
  };
  for (let index = 0; index < refiners; index++) write(`refiner_${index}`, branch.besideRefiner(index, x));
  for (let index = 0; index < layers; index++) write(`layer_${index}`, branch.besideLayer(index, x));
}

const MOST_LAYERS = 256;
/** Channels of a control picture's latent, or of it, a mask and the latent of a picture to repaint. */
const CHANNELS: readonly number[] = [16, 33];
const PATCH_CELLS = 4;
const EXPECTED = "a control net of Z-Image (Fun ControlNet)";
const MARK = "control_all_x_embedder.2-1.weight";
const FIRST = "control_layers.0.";
const ROOTS = ["control_all_x_embedder.", "control_layers.", "control_noise_refiner."];
const QWEN_MARK = "controlnet_blocks.0.y_rms.weight";

/** Sizes and weights of a control net of Z-Image. Throws model.unsupported for other model patches, and model.invalid. */
export function zImageControlPart(whole: ModelHeader): Part<ZImageControlConfig> {
  const file = unwrappedFile(whole, (weights) => weights.has(MARK));
  const shapes = new PartShapes(file, file.weights, (key) => key);
  if (shapes.has(QWEN_MARK)) throw unsupported(file.name, EXPECTED, "a control net of Qwen-Image (DiffSynth)");
  if (!shapes.has(MARK)) throw unsupported(file.name, EXPECTED, foreignKind(file.weights) ?? "unknown keys");
  const config = controlConfig(shapes);
  return { config, weights: shapes.check((network) => buildZImageControl(network, config), ROOTS, EXPECTED) };
}

function controlConfig(shapes: PartShapes): ZImageControlConfig {
  const [width, patch] = shapes.sides(MARK, 2) as [number, number];
  const channels = patch / PATCH_CELLS;
  if (!CHANNELS.includes(channels))
    throw unsupported(shapes.file.name, `${EXPECTED} with ${CHANNELS.join(" or ")} channels`, `one with ${channels}`);
  const [headSize] = shapes.sides(`${FIRST}attention.norm_k.weight`, 1) as [number];
  if (headSize % 2 !== 0 || width % headSize !== 0)
    throw shapes.invalid(`heads of an even number of numbers that divide ${width}`, `${headSize}`);
  const [mlp] = shapes.sides(`${FIRST}feed_forward.w1.weight`, 2) as [number];
  const [, timeWidth] = shapes.sides(`${FIRST}adaLN_modulation.0.weight`, 2) as [number, number];
  return {
    width,
    heads: width / headSize,
    headSize,
    mlp,
    timeWidth,
    channels,
    layers: shapes.count("control_layers.", MOST_LAYERS),
    refiners: shapes.count("control_noise_refiner.", MOST_LAYERS),
    guidesRefiners: shapes.has("control_noise_refiner.0.after_proj.weight"),
  };
}
