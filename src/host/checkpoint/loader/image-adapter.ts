import { LatentkitError } from "../../../base/errors.js";
import { cropped, cycled } from "../../../tensor/parts.js";
import { resizeAntialiased } from "../../../tensor/resize.js";
import { Tensor } from "../../../tensor/tensor.js";
import { withHostModel } from "../../derived-model.js";
import type { ClipVision, ImageAdapter, Model, ShownPictures } from "../../types.js";
import { PICTURE_SIDE } from "../clip-vision/build.js";
import { CheckpointClipVision, clipPixels } from "../clip-vision/model.js";
import { CheckpointModel } from "../diffusion/model.js";
import { buildProjection, type KeysConfig, type ProjectionConfig, projectionWork } from "../ip-adapter/build.js";
import type { IpAdapterPart } from "../ip-adapter/recognise.js";
import type { AdapterUse } from "../ip-adapter/use.js";
import { ModelPart } from "../session/model-part.js";
import type { Runtime } from "../session/runtime.js";
import type { WeightFile } from "../weights/stored.js";

interface Source {
  readonly runtime: Runtime;
  readonly projection: ModelPart<ProjectionConfig>;
  readonly keys: ModelPart<KeysConfig>;
  readonly isSdxl: boolean;
}

/** An IPAdapter of a file, which shows pictures to models of the same host. */
export class CheckpointImageAdapter implements ImageAdapter {
  readonly #source: Source;

  constructor(
    source: Source,
    readonly encoder?: ClipVision,
  ) {
    this.#source = source;
  }

  static of(runtime: Runtime, file: WeightFile, { projection, keys, isSdxl }: IpAdapterPart): CheckpointImageAdapter {
    const part = <Config>(one: { readonly config: Config; readonly weights: WeightFile["weights"] }) =>
      ModelPart.of("IPAdapter", file, one);
    return new CheckpointImageAdapter({ runtime, projection: part(projection), keys: part(keys), isSdxl });
  }

  get isSdxl(): boolean {
    return this.#source.isSdxl;
  }

  withEncoder(encoder: ClipVision): CheckpointImageAdapter {
    return new CheckpointImageAdapter(this.#source, encoder);
  }

  async embed(encoder: ClipVision, pictures: Tensor, mask?: Tensor, signal?: AbortSignal): Promise<Tensor> {
    const own = this.#requireFit(encoder);
    const pixels = clipPixels(pictures, "center");
    const state = this.#config.kind === "base" ? "embedding" : "penultimate";
    const outputs = await own.states(mask === undefined ? pixels : masked(pixels, mask), [state], signal);
    return outputs[state]!;
  }

  async embedNone(encoder: ClipVision | undefined, signal?: AbortSignal): Promise<Tensor> {
    const { kind, inputs } = this.#config;
    if (kind === "base") return Tensor.zeros([1, inputs]);
    if (encoder !== undefined)
      return this.embed(encoder, Tensor.zeros([1, PICTURE_SIDE, PICTURE_SIDE, 3]), undefined, signal);
    const { label } = this.#source.projection;
    throw new LatentkitError(
      "value.invalid",
      `${label}: expected a CLIP vision encoder for the negative side, received none.`,
    );
  }

  async show(model: Model, pictures: ShownPictures, signal?: AbortSignal): Promise<Model> {
    const { embeds, negative, ...how } = pictures;
    const { keys, isSdxl } = this.#source;
    const use: AdapterUse = {
      ...how,
      keys,
      isSdxl,
      tokens: await this.#tokens(embeds, signal),
      negativeTokens: await this.#tokens(negative, signal),
    };
    return withHostModel(model, (own) => {
      if (!(own instanceof CheckpointModel)) {
        const message = 'host "checkpoint" loaded this IPAdapter, which cannot change a model of another host.';
        throw new LatentkitError("host.missing", message);
      }
      const { network } = own.source;
      if (network.shown === undefined)
        throw new LatentkitError(
          "value.invalid",
          `${keys.label} is for a different model family than ${network.label}.`,
        );
      return new CheckpointModel({ ...own.source, network: network.shown(use) });
    });
  }

  get #config(): ProjectionConfig {
    return this.#source.projection.config;
  }

  async #tokens(state: Tensor, signal?: AbortSignal): Promise<Tensor> {
    const { runtime, projection } = this.#source;
    const { inputs, kind } = this.#config;
    if (state.shape.at(-1) !== inputs || state.shape.length !== (kind === "base" ? 2 : 3)) {
      const expected = `embedded pictures [${kind === "base" ? "n" : "n, tokens"}, ${inputs}]`;
      const received = `[${state.shape.join(", ")}]`;
      throw new LatentkitError("value.invalid", `${projection.label}: expected ${expected}, received ${received}.`);
    }
    const session = projection.session("image projection", buildProjection, {
      work: projectionWork(projection.config),
    });
    return (await runtime.run(session, { state }, { signal })).tokens!;
  }

  #requireFit(encoder: ClipVision): CheckpointClipVision {
    const { label } = this.#source.projection;
    if (!(encoder instanceof CheckpointClipVision)) {
      const message =
        'host "checkpoint" loaded this IPAdapter, which cannot use a CLIP vision encoder of another host.';
      throw new LatentkitError("host.missing", message);
    }
    const { kind, inputs } = this.#config;
    const { embedding, hidden } = encoder.part.config;
    const width = kind === "base" ? embedding : hidden;
    if (width === inputs) return encoder;
    const expected = `a CLIP vision encoder whose ${kind === "base" ? "embeddings" : "states"} have ${inputs} numbers`;
    const message = `${label}: expected ${expected}, received ${encoder.part.label} with ${width}.`;
    throw new LatentkitError("value.invalid", message);
  }
}

/** Pixels [n, 3, 224, 224] times the middle squares of masks [1 or m, H, W]. */
function masked(pixels: Tensor, mask: Tensor): Tensor {
  const [count, height, width] = mask.shape as [number, number, number];
  const side = Math.min(height, width);
  const [top, left] = [Math.floor((height - side) / 2), Math.floor((width - side) / 2)];
  const square = cropped(mask.reshape([count, height, width, 1]), 1, { top, left, height: side, width: side });
  const sized = resizeAntialiased(square, { height: PICTURE_SIDE, width: PICTURE_SIDE });
  const all = cycled(sized, pixels.shape[0]!);
  const out = Tensor.unfilled(pixels.shape);
  const plane = PICTURE_SIDE * PICTURE_SIDE;
  for (let i = 0; i < out.size; i++)
    out.data[i] = pixels.data[i]! * all.data[Math.floor(i / (3 * plane)) * plane + (i % plane)]!;
  return out;
}
