import assert from "node:assert/strict";
import {
  type Clip,
  type ClipVision,
  type Conditioning,
  createPreviewHost,
  type Host,
  type HostFiles,
  type ImageAdapter,
  type Model,
  type ModelPatch,
  type ShownPictures,
  Tensor,
} from "latentkit";
import { scale } from "#src/tensor/ops.js";

/** A model of a class, with a private field that only its own methods can read: what a network was patched with. */
export class PatchableModel implements Model {
  readonly #inner: Model;
  readonly #factor: number;

  constructor(
    inner: Model,
    factor = 1,
    readonly patches: readonly ModelPatch[] = [],
  ) {
    this.#inner = inner;
    this.#factor = factor;
  }

  get sampling() {
    return this.#inner.sampling;
  }

  async predict(x: Tensor, sigma: number, cond: Conditioning): Promise<Tensor> {
    return scale(await this.#inner.predict!(x, sigma, cond), this.#factor);
  }

  patch(patch: ModelPatch): PatchableModel {
    return new PatchableModel(this.#inner, this.#factor, [...this.patches, patch]);
  }

  weighed(factor: number): PatchableModel {
    return new PatchableModel(this.#inner, this.#factor * factor, this.patches);
  }
}

/** A patchable model of the preview host; it lists the patches that its nodes made. */
export const patchable = async (family = "sd15"): Promise<PatchableModel> =>
  new PatchableModel((await createPreviewHost().loadCheckpoint(`preview-${family}.safetensors`)).model);

/** A text encoder whose layers differ. */
export const layeredClip = (name: string, layer = -1): Clip & { readonly layer: number } => ({
  layer,
  encoders: [
    {
      name,
      start: 1,
      end: 2,
      pad: 0,
      length: 77 as const,
      tokenize: (text) => [...text].map((letter) => letter.charCodeAt(0)),
      encode: async (chunks) => ({
        cond: Tensor.full([chunks.length, 77, 4], layer),
        pooled: Tensor.full([chunks.length, 4], layer),
      }),
    },
  ],
  atLayer: (other) => layeredClip(name, other),
});

/** Repeats each pixel. */
export function enlarged(image: Tensor, scale: number): Tensor {
  const [batch, height, width, channels] = image.shape as [number, number, number, number];
  const out = Tensor.zeros([batch, height * scale, width * scale, channels]);
  const [rows, columns] = [height * scale, width * scale];
  for (let at = 0; at < out.size; at++) {
    const [channel, column] = [at % channels, Math.floor(at / channels) % columns];
    const [row, item] = [Math.floor(at / (channels * columns)) % rows, Math.floor(at / (channels * columns * rows))];
    const from = (item * height + Math.floor(row / scale)) * width + Math.floor(column / scale);
    out.data[at] = image.data[from * channels + channel]!;
  }
  return out;
}

/** An image adapter that embeds a picture to its mean colour, and adds what it shows to the patches of a model. */
class NamedAdapter implements ImageAdapter {
  constructor(
    readonly isSdxl = false,
    readonly encoder?: ClipVision,
  ) {}

  withEncoder(encoder: ClipVision): NamedAdapter {
    return new NamedAdapter(this.isSdxl, encoder);
  }

  async embed(_: ClipVision, pictures: Tensor): Promise<Tensor> {
    const [count, height, width, channels] = pictures.shape as [number, number, number, number];
    const size = height * width * channels;
    const mean = (item: number) =>
      pictures.data.subarray(item * size, (item + 1) * size).reduce((sum, value) => sum + value, 0) / size;
    return Tensor.from(Array.from({ length: count }, (_, item) => [mean(item), 1]).flat(), [count, 2]);
  }

  async embedNone(): Promise<Tensor> {
    return Tensor.zeros([1, 2]);
  }

  async show(model: Model, pictures: ShownPictures): Promise<Model> {
    return model.patch === undefined ? model : model.patch({ node: "show", inputs: { ...pictures } });
  }
}

/** One file of each kind, as this host loads it. */
export const FILES: { [Kind in keyof HostFiles]: (settings?: Readonly<Record<string, string>>) => unknown } = {
  loras: () => ({
    apply: (model: Model, clip: Clip | undefined, strengths: { model: number; clip: number }) => {
      assert.ok(model instanceof PatchableModel, "the host's own model");
      return [model.weighed(1 + strengths.model), strengths.clip === 0 ? undefined : clip?.atLayer?.(-2)];
    },
  }),
  vae: () => ({ encode: async (x: Tensor) => x, decode: async (x: Tensor) => x }),
  controlnet: () => ({ ofType: (type: number) => ({ type }) }),
  upscale_models: () => ({ scale: 2, upscale: async (x: Tensor) => enlarged(x, 2) }),
  clip_vision: () => ({ encode: async (x: Tensor, crop: string) => ({ shape: x.shape, crop }) }),
  ipadapter: (settings) => new NamedAdapter(settings?.type === "sdxl"),
  style_models: () => ({ tokens: async () => Tensor.full([1, 2, 8], 3) }),
  gligen: () => ({ boxes() {} }),
  hypernetworks: () => ({ layers() {} }),
  model_patches: () => ({ patches() {} }),
  diffusion_models: (settings) => ({ ...createModel(), settings }),
  text_encoders: (settings) => ({ ...layeredClip(settings?.type === "sdxl" ? "g" : "l"), settings }),
};

const createModel = (): Model => ({ sampling: MODEL.sampling, predict: async (x) => x });
const MODEL = await patchable();

/** A host with patchable models and one file of each kind, named "KIND.safetensors". */
export function fileHost(): Host {
  const preview = createPreviewHost();
  return {
    ...preview,
    name: "files",
    async loadCheckpoint(name) {
      const { model, vae } = await preview.loadCheckpoint(name);
      const clipVision = FILES.clip_vision() as HostFiles["clip_vision"];
      return { model: new PatchableModel(model), clip: layeredClip("l"), vae, clipVision };
    },
    files: (kind) => [`${kind}.safetensors`],
    loadFile: async (kind, name, _, settings) => {
      assert.equal(name, `${kind}.safetensors`);
      return FILES[kind](settings) as never;
    },
  };
}
