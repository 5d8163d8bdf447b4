import { statSync } from "node:fs";
import { basename } from "node:path";
import { describe, LatentkitError } from "../../../base/errors.js";
import type { HostFiles } from "../../host.js";
import type { Checkpoint, Clip, ControlNet, Model, Vae, Warn } from "../../types.js";
import { CheckpointClipVision } from "../clip-vision/model.js";
import { clipVisionPart } from "../clip-vision/recognise.js";
import { CheckpointModelPatch } from "../diffusion/control-pictures.js";
import { absentPart, absentVae, type RecognisedCheckpoint } from "../diffusion/family.js";
import { CheckpointModel, type ModelSource } from "../diffusion/model.js";
import { samplingOf } from "../diffusion/sampling.js";
import { CLIP_TYPES, FAMILY_OF_ENCODER, flux2Clip, JOINED_CLIPS, typeRefusal } from "../families/clip-types.js";
import { recogniseCheckpoint, recogniseModelPatch } from "../families/recognise.js";
import type { ModelFile, ModelFolders } from "../files/model-folders.js";
import { FileCache } from "../files/recent.js";
import { ipAdapterPart } from "../ip-adapter/recognise.js";
import { recogniseLora } from "../lora/recognise.js";
import { openModelFile } from "../recognition/open.js";
import type { Part } from "../recognition/part.js";
import { ModelPart } from "../session/model-part.js";
import type { Runtime } from "../session/runtime.js";
import type { TextEncoderConfig } from "../text-encoder/build.js";
import { EmbeddingRows } from "../text-encoder/embeddings.js";
import { JoinedClip } from "../text-encoder/joined-clip.js";
import { BuiltTextEncoder, CheckpointClip } from "../text-encoder/model.js";
import { Qwen3Clip } from "../text-encoder/qwen3.js";
import { Qwen25Clip } from "../text-encoder/qwen25.js";
import {
  encoderName,
  recogniseTextEncoders,
  type StableDiffusionFamily,
  type TextPart,
} from "../text-encoder/recognise.js";
import { BuiltT5 } from "../text-encoder/t5.js";
import { CheckpointControlNet } from "../unet/control.js";
import { CheckpointControlLora } from "../unet/control-lora.js";
import { recogniseControl } from "../unet/controls.js";
import { CheckpointT2iAdapter } from "../unet/t2i-adapter.js";
import { CheckpointUpscaler } from "../upscaler/build.js";
import { upscalerPart } from "../upscaler/recognise.js";
import { BuiltVae, CheckpointVae } from "../vae/model.js";
import { recogniseVae } from "../vae/recognise.js";
import { taesdPart, taesdScale } from "../vae/taesd.js";
import { unsupported, type WeightFile } from "../weights/stored.js";
import { readValues } from "../weights/values.js";
import { CheckpointImageAdapter } from "./image-adapter.js";
import { CheckpointLora } from "./lora.js";
import { loadPipeline } from "./pipeline.js";

/** Beginnings of the names of tiny decoders, as ComfyUI looks for them, by the format of their latents. */
const TINY_DECODERS: Readonly<Record<string, string>> = {
  SD15: "taesd_decoder",
  SDXL: "taesdxl_decoder",
  SD3: "taesd3_decoder",
  Flux: "taef1_decoder",
};

/** Sizes of an encoder that rows of textual inversions depend on. */
type EncoderSizes = Pick<TextEncoderConfig, "name" | "hidden" | "vocabulary">;

/** Loads model files: it reads their headers, the runtime reads the weights when a network first runs. */
export class ModelLoader {
  readonly #folders: ModelFolders;
  readonly #runtime: Runtime;
  readonly #files = new FileCache();
  /** Rows of textual inversions, by the encoder sizes that they depend on. */
  readonly #rows = new Map<string, EmbeddingRows>();

  constructor(folders: ModelFolders, runtime: Runtime) {
    this.#folders = folders;
    this.#runtime = runtime;
  }

  /** Loads a checkpoint, or a folder of diffusers with networks exported to ONNX. A part that the file lacks fails when it is used. Throws model.* and file.*. */
  async checkpoint(name: string): Promise<Checkpoint> {
    const model = this.#folders.resolve("checkpoints", name);
    if (statSync(model.path, { throwIfNoEntry: false })?.isDirectory()) return this.#pipeline(model);
    return this.#files.get(model.path, "checkpoint", async () => {
      const file = await openModelFile(model);
      const recognised = await recogniseCheckpoint(file, readValues);
      return {
        model: this.#model(file, recognised),
        clip: this.#clip(file, recognised),
        vae: this.#vae(file, recognised.vae),
      };
    });
  }

  /** Loads a file of another kind; `settings` are the inputs of its loader, `warn` learns of those without effect. Throws model.* and file.*. */
  async file<Kind extends keyof HostFiles>(
    kind: Kind,
    name: string,
    settings: Readonly<Record<string, string>> = {},
    warn?: Warn,
  ): Promise<HostFiles[Kind]> {
    const loaders: { readonly [Each in keyof HostFiles]?: Loader<Each> } = {
      diffusion_models: async (file) => this.#model(file, await recogniseCheckpoint(file, readValues)),
      text_encoders: async (file) => this.#textEncoder(file, settings.type),
      vae: (file) => this.#vaeFile(file),
      loras: async (file) => new CheckpointLora(file, await recogniseLora(file, readValues)),
      controlnet: async (file) => this.#controlNet(file),
      clip_vision: async (file) =>
        new CheckpointClipVision(this.#runtime, ModelPart.of("CLIP vision", file, clipVisionPart(file))),
      ipadapter: async (file) => CheckpointImageAdapter.of(this.#runtime, file, ipAdapterPart(file)),
      model_patches: async (file) => {
        const { family, part } = recogniseModelPatch(file);
        return new CheckpointModelPatch(family, ModelPart.of("model patch", file, part));
      },
      upscale_models: async (file) =>
        new CheckpointUpscaler(this.#runtime, ModelPart.of("upscale model", file, upscalerPart(file))),
    };
    const load = loaders[kind] as Loader<Kind> | undefined;
    if (load === undefined) throw new LatentkitError("host.missing", `host "checkpoint" cannot load ${kind}.`);
    const model = this.#folders.resolve(kind, name);
    const { weight_dtype: dtype = "default" } = settings;
    // every run is warned, even if the file is loaded already
    if (dtype !== "default")
      warn?.(`${describe(model.name)}: weight_dtype ${dtype} has no effect: weights keep the type they are stored in.`);
    const variant = JSON.stringify([kind, settings]);
    return this.#files.get(model.path, variant, async () => load(await openModelFile(model)));
  }

  #model(file: WeightFile, { family, sampling, network }: RecognisedCheckpoint): Model {
    const modelSampling = samplingOf(family, sampling);
    return new CheckpointModel({
      network: network.open(this.#runtime, file),
      family,
      sampling: modelSampling,
      reading: sampling.prediction,
      tinyDecoder: this.#tinyDecoder(modelSampling.latentFormat.name),
    });
  }

  /** Finds a tiny decoder for previews in its folder; undefined if there is none. */
  #tinyDecoder(latentFormat: string): ModelSource["tinyDecoder"] {
    const start = TINY_DECODERS[latentFormat];
    const isDecoder = (name: string): boolean => basename(name).startsWith(start!) && name.endsWith(".safetensors");
    const name = start === undefined ? undefined : this.#folders.list("vae_approx").find(isDecoder);
    if (name === undefined) return undefined;
    const model = this.#folders.resolve("vae_approx", name);
    return () =>
      this.#files.get(model.path, "preview", async () => {
        const file = await openModelFile(model);
        const tiny = taesdPart(file);
        if (tiny === undefined) throw unsupported(file.name, "a tiny decoder for previews", "another file");
        const part = ModelPart.of("TAESD", file, tiny);
        return new CheckpointVae(new BuiltVae(this.#runtime, { kind: "taesd", part, scaleFactor: 1 }));
      });
  }

  #clip(file: WeightFile, recognised: RecognisedCheckpoint): Clip {
    const { textEncoders, encoderCount, clipFamily = "sd1", clipType } = recognised;
    if (textEncoders.length !== encoderCount) return new AbsentClip(file.name);
    return this.#clipOf(file, textEncoders, clipType, () => clipFamily);
  }

  /** `familyOf` returns the family of CLIP's encoders. Throws the same errors. */
  #clipOf(
    file: WeightFile,
    found: readonly TextPart[],
    type: string | undefined,
    familyOf: (encoders: readonly Part<TextEncoderConfig>[]) => StableDiffusionFamily,
  ): Clip {
    const qwen3 = found.find(({ kind }) => kind === "qwen3");
    if (qwen3?.kind === "qwen3") {
      const part = ModelPart.of("text encoder Qwen3", file, qwen3.part);
      return type === "flux2" ? flux2Clip(this.#runtime, part) : new Qwen3Clip(this.#runtime, part);
    }
    const qwen25 = found.find(({ kind }) => kind === "qwen2.5-vl");
    if (qwen25?.kind === "qwen2.5-vl") {
      const tower = qwen25.tower && ModelPart.of("vision tower Qwen2.5-VL", file, qwen25.tower);
      return new Qwen25Clip(this.#runtime, ModelPart.of("text encoder Qwen2.5-VL", file, qwen25.part), tower);
    }
    const encoders = found.flatMap(({ kind, part }) => (kind === "clip" ? [part] : []));
    const networks = encoders.map((encoder) => {
      const part = ModelPart.of(`text encoder ${encoder.config.name}`, file, encoder);
      return new BuiltTextEncoder(this.#runtime, part, this.#rowsOf(encoder.config));
    });
    const joined = JOINED_CLIPS.find((family) => family.type === type);
    if (joined === undefined) return new CheckpointClip({ encoders: networks, family: familyOf(encoders) });
    const clips = [
      ...networks.map((network) => ({ [network.name]: network })),
      ...found.flatMap(({ kind, part }) =>
        kind === "t5" ? [{ t5: new BuiltT5(this.#runtime, ModelPart.of("text encoder T5", file, part)) }] : [],
      ),
    ].map((each) => new JoinedClip(joined, each));
    return clips[0]!.joinedWith(clips.slice(1));
  }

  #pipeline(model: ModelFile): Promise<Checkpoint> {
    const surroundings = {
      runtime: this.#runtime,
      rowsOf: (sizes: EncoderSizes) => this.#rowsOf(sizes),
    };
    return this.#files.get(model.path, "pipeline", () => loadPipeline(model, surroundings));
  }

  #rowsOf({ name, hidden, vocabulary }: EncoderSizes): EmbeddingRows {
    const key = `${name} ${hidden} ${vocabulary}`;
    const rows = this.#rows.get(key) ?? new EmbeddingRows({ name, width: hidden, vocabulary }, this.#folders);
    this.#rows.set(key, rows);
    return rows;
  }

  #textEncoder(file: WeightFile, type = "stable_diffusion"): Clip {
    const found = recogniseTextEncoders(file);
    const refusal = typeRefusal(file.name, found.map(encoderName), type);
    if (refusal !== undefined) throw refusal;
    return this.#clipOf(file, found, type, ([first]) => {
      const families = CLIP_TYPES[type]!;
      const own = FAMILY_OF_ENCODER[first!.config.name];
      return families.includes(own) ? own : families[0]!;
    });
  }

  #vae(file: WeightFile, vae: RecognisedCheckpoint["vae"]): Vae {
    if (vae === undefined) return new AbsentVae(file.name);
    const part = ModelPart.of("VAE", file, vae);
    return new CheckpointVae(new BuiltVae(this.#runtime, { kind: "vae", part }));
  }

  async #vaeFile(file: WeightFile): Promise<Vae> {
    const vae = recogniseVae(file);
    if (vae.kind === "vae") return this.#vae(file, vae.part);
    const scaleFactor = await taesdScale(file, readValues);
    const part = ModelPart.of("TAESD", file, vae.part);
    return new CheckpointVae(new BuiltVae(this.#runtime, { kind: "taesd", part, scaleFactor }));
  }

  #controlNet(file: WeightFile): ControlNet {
    const control = recogniseControl(file);
    switch (control.kind) {
      case "net": {
        const { isDifference, ...net } = control.part;
        return new CheckpointControlNet(ModelPart.of("ControlNet", file, net), isDifference);
      }
      case "lora":
        return new CheckpointControlLora(file, control.part);
      case "t2i":
        return new CheckpointT2iAdapter(ModelPart.of("T2I-Adapter", file, control.part));
    }
  }
}

type Loader<Kind extends keyof HostFiles> = (file: WeightFile) => Promise<HostFiles[Kind]>;

/** Stands for the clip of a file without text encoders, or with one of two. */
class AbsentClip implements Clip {
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
  }

  get encoders(): never {
    throw absentPart(this.#name, "text encoder", "CLIPLoader or DualCLIPLoader");
  }
}

/** Stands for the VAE of a file without one. */
class AbsentVae implements Vae {
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
  }

  async encode(): Promise<never> {
    throw absentVae(this.#name);
  }

  async decode(): Promise<never> {
    throw absentVae(this.#name);
  }
}
