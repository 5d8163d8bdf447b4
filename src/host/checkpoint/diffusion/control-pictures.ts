import { describe, LatentkitError } from "../../../base/errors.js";
import { firstChannels } from "../../../tensor/channels.js";
import { weightedSum } from "../../../tensor/ops.js";
import { cycled, joined, narrowed } from "../../../tensor/parts.js";
import { middleOf, resizeImage, resizeLatent } from "../../../tensor/resize.js";
import { roundHalfEven } from "../../../tensor/rounding.js";
import { Tensor } from "../../../tensor/tensor.js";
import { intoModel } from "../../sampling/latent-space.js";
import type { ModelPatch, SamplingRun, Vae } from "../../types.js";
import type { ModelPart } from "../session/model-part.js";

/** Sizes of a control net that its pictures and its transformer depend on. */
export interface ControlSizes {
  /** Numbers of a token, which are those of the transformer. */
  readonly width: number;
  /** 16 of the control picture's latent, or 33: these, a mask and the latent of a picture to repaint. */
  readonly channels: number;
}

/** A model patch of a file; models of the same host and family take it. */
export class CheckpointModelPatch {
  constructor(
    readonly family: string,
    readonly part: ModelPart<ControlSizes>,
  ) {}
}

/** A control net with its pictures. */
export interface ControlInput<Config extends ControlSizes = ControlSizes> {
  readonly part: ModelPart<Config>;
  readonly vae: Vae;
  readonly strength: number;
  /** [B, H, W, C] in 0…1: outlines, depths, poses. */
  readonly image?: Tensor;
  /** [B, H, W, C] in 0…1: the picture to repaint. */
  readonly inpaintImage?: Tensor;
  /** [B, H, W]: 1 where it is repainted. */
  readonly mask?: Tensor;
}

/** The transformer that takes a control net. */
interface Controlled {
  readonly family: string;
  readonly label: string;
  readonly width: number;
}

/** The control net of a node's inputs, for a transformer. Fails with host.missing and value.invalid. */
export function controlOf<Config extends ControlSizes>(
  { node, inputs }: ModelPatch,
  { family, label, width }: Controlled,
): ControlInput<Config> {
  const { model_patch: patch, vae, image, inpaint_image, mask, strength } = inputs;
  if (!(patch instanceof CheckpointModelPatch))
    throw new LatentkitError("host.missing", 'host "checkpoint" cannot run a model patch that another host loaded.');
  if (patch.family !== family || patch.part.config.width !== width)
    throw new LatentkitError("value.invalid", `${patch.part.label} is for a different model family than ${label}.`);
  if (image === undefined && inpaint_image === undefined)
    throw new LatentkitError("value.invalid", `${node}: expected an image or an inpaint_image, received neither.`);
  // a family's patches have its own sizes
  const part = patch.part as ModelPart<Config>;
  const control = { part, vae: vae as Vae, strength: strength as number };
  const pictures = { image, inpaintImage: inpaint_image, mask } as Pick<ControlInput, "image">;
  return { ...control, ...pictures };
}

/** Pixels along a side of a latent's cell. */
const CELL = 8;
const COLOURS = 3;
const GREY = 0.5;
/** Channels of nets that take only a control picture. */
const PLAIN_CHANNELS = 16;

/** Inputs of the control nets of a run: latents in the size of a call, and strengths. */
export class ControlPictures {
  readonly #controls: readonly ControlInput[];
  readonly #run: SamplingRun;
  readonly #shaped: (latent: Tensor) => Tensor;
  /** By the call's size: the same tensors at each step. */
  readonly #inputs = new Map<string, Promise<Readonly<Record<string, Tensor>>>>();

  /** `shaped` gives latents the form in which the networks take them. */
  constructor(controls: readonly ControlInput[], run: SamplingRun, shaped = evenSides) {
    this.#controls = controls;
    this.#run = run;
    this.#shaped = shaped;
  }

  /** `control_N` [1 or items, …] and `strength_N` for a call on latents [items, C, h, w]. */
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
      const latent = this.#shaped(await this.#encode(control, rows, columns));
      inputs[`control_${index}`] = latent.shape[0] === 1 ? latent : cycled(cycled(latent, batch), items);
      inputs[`strength_${index}`] = Tensor.full([1], control.strength);
    }
    return inputs;
  }

  /** The input of one net [n, channels, h, w]. */
  async #encode(control: ControlInput, rows: number, columns: number): Promise<Tensor> {
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
    const expected = `a VAE with ${PLAIN_CHANNELS} latent channels, as its model has`;
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
