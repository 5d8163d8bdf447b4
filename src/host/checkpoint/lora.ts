import { describe, LatentkitError } from "../../base/errors.js";
import type { Clip, Lora, Model } from "../types.js";
import { BuiltTextEncoder } from "./built-text-encoder.js";
import { CheckpointClip, CheckpointEncoder, type TextNetwork } from "./clip.js";
import { CheckpointModel, type DiffusionNetwork } from "./model.js";
import { type Adapter, type ModelPart, stateOf } from "./model-part.js";
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
    const network = this.#adaptedNetwork(source.network, strengths.model);
    const changed = new CheckpointModel({ ...source, network });
    if (clip === undefined) return [changed];
    const encoders = encodersOf(clip);
    const adapted = encoders.map(({ network }) => {
      const { runtime, part, rows } = requireTextEncoder(network);
      const adapter = this.#adapter(textTargetOf(part), strengths.clip);
      return new BuiltTextEncoder(runtime, adapter === undefined ? part : part.adapted(adapter), rows);
    });
    const [first] = encoders;
    return [changed, first === undefined ? clip : new CheckpointClip({ ...first.source, encoders: adapted })];
  }

  unmatched(model: Model, clip: Clip | undefined): string | undefined {
    const texts =
      clip === undefined ? [] : encodersOf(clip).map(({ network }) => textTargetOf(requireTextEncoder(network).part));
    const targets = [requireTarget(requireOwn(model).source.network), ...texts];
    const unmatched = unmatchedWarning(this.#lora, unmatchedModules(this.#lora, targets));
    const sentences = [this.#lora.note, unmatched].filter((sentence) => sentence !== undefined);
    return sentences.length === 0 ? undefined : sentences.join(" ");
  }

  #adaptedNetwork(network: DiffusionNetwork, strength: number): DiffusionNetwork {
    const adapter = this.#adapter(requireTarget(network), strength);
    return adapter === undefined ? network : network.adapted!(adapter);
  }

  /** Changes of a network; undefined where it has none. */
  #adapter(target: LoraTarget, strength: number): Adapter | undefined {
    const changes = changesOf(this.#lora, target, strength);
    if (changes.size === 0) return undefined;
    return { key: `${strength} ${stateOf(this.#file)}`, file: this.#file, changes };
  }
}

const textTargetOf = ({ config, weights }: ModelPart<TextEncoderConfig>): LoraTarget => ({
  kind: "text",
  config,
  weights,
});

function requireOwn(model: Model): CheckpointModel {
  if (model instanceof CheckpointModel) return model;
  throw foreign("a model");
}

function requireTarget({ target, label }: DiffusionNetwork): LoraTarget {
  if (target !== undefined) return target;
  throw exported(label);
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
