import { describe, LatentkitError } from "../../base/errors.js";
import type { Clip, Lora, Model } from "../types.js";
import { BuiltTextEncoder } from "./built-text-encoder.js";
import { BuiltUnet } from "./built-unet.js";
import { CheckpointClip, CheckpointEncoder, type TextNetwork } from "./clip.js";
import { CheckpointModel, type ModelSource } from "./model.js";
import { type ModelPart, stateOf } from "./model-part.js";
import type { TextEncoderConfig } from "./networks/text-encoder.js";
import { changesOf, unmatchedModules, unmatchedWarning } from "./weights/lora/changes.js";
import type { LoraFile } from "./weights/lora/lora-file.js";
import type { LoraTarget } from "./weights/lora/names.js";
import type { WeightFile } from "./weights/stored.js";

/** A LoRA of a file, which changes models and clips of the same host. */
export class CheckpointLora implements Lora {
  readonly #file: WeightFile;
  readonly #lora: LoraFile;

  constructor(file: WeightFile, lora: LoraFile) {
    this.#file = file;
    this.#lora = lora;
  }

  apply(model: Model, clip: Clip | undefined, strengths: { model: number; clip: number }): [Model, Clip?] {
    const { source } = requireOwn(model);
    const { runtime, part } = requireUnet(source);
    const unet = new BuiltUnet(runtime, this.#adapted(part, targetOf(part), strengths.model));
    const changed = new CheckpointModel({ ...source, unet });
    if (clip === undefined) return [changed];
    const encoders = encodersOf(clip);
    const adapted = encoders.map(({ network }) => {
      const { runtime, part, rows } = requireTextEncoder(network);
      return new BuiltTextEncoder(runtime, this.#adapted(part, textTargetOf(part), strengths.clip), rows);
    });
    return [changed, new CheckpointClip({ ...encoders[0]!.source, encoders: adapted })];
  }

  unmatched(model: Model, clip: Clip | undefined): string | undefined {
    const texts =
      clip === undefined ? [] : encodersOf(clip).map(({ network }) => textTargetOf(requireTextEncoder(network).part));
    const targets = [targetOf(requireUnet(requireOwn(model).source).part), ...texts];
    const unmatched = unmatchedWarning(this.#lora, unmatchedModules(this.#lora, targets));
    const sentences = [this.#lora.note, unmatched].filter((sentence) => sentence !== undefined);
    return sentences.length === 0 ? undefined : sentences.join(" ");
  }

  #adapted<Config>(part: ModelPart<Config>, target: LoraTarget, strength: number): ModelPart<Config> {
    const changes = changesOf(this.#lora, target, strength);
    if (changes.size === 0) return part;
    return part.adapted({ key: `${strength} ${stateOf(this.#file)}`, file: this.#file, changes });
  }
}

const targetOf = ({ weights }: ModelPart<unknown>): LoraTarget => ({ kind: "unet", weights });

const textTargetOf = ({ config, weights }: ModelPart<TextEncoderConfig>): LoraTarget => ({
  kind: "text",
  config,
  weights,
});

function requireOwn(model: Model): CheckpointModel {
  if (model instanceof CheckpointModel) return model;
  throw foreign("a model");
}

function requireUnet({ unet }: ModelSource): BuiltUnet {
  if (unet instanceof BuiltUnet) return unet;
  throw exported(unet.label);
}

function requireTextEncoder(network: TextNetwork): BuiltTextEncoder {
  if (network instanceof BuiltTextEncoder) return network;
  throw exported(`Text encoder ${describe(network.name)}`);
}

const exported = (label: string): LatentkitError =>
  new LatentkitError("host.missing", `${label} is a finished ONNX model, whose weights no LoRA can change.`);

const encodersOf = ({ encoders }: Clip): CheckpointEncoder[] =>
  encoders.map((encoder) => {
    if (encoder instanceof CheckpointEncoder) return encoder;
    throw foreign("a clip");
  });

const foreign = (what: string): LatentkitError =>
  new LatentkitError("host.missing", `host "checkpoint": its LoRAs cannot change ${what} of another host.`);
