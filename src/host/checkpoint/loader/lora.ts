import { describe, LatentkitError } from "../../../base/errors.js";
import type { Clip, Lora, Model } from "../../types.js";
import { CheckpointModel, type DiffusionNetwork } from "../diffusion/model.js";
import { changesOf, leftOutInputs, unmatchedModules, unmatchedWarning } from "../lora/changes.js";
import type { LoraTarget } from "../lora/places.js";
import type { LoraFile } from "../lora/recognise.js";
import { type Adapter, fileStateKey } from "../session/model-part.js";
import { JoinedClip } from "../text-encoder/joined-clip.js";
import { BuiltTextEncoder, CheckpointClip, CheckpointEncoder, type TextNetwork } from "../text-encoder/model.js";
import type { WeightFile } from "../weights/stored.js";

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
    return clip === undefined ? [changed] : [changed, this.#adaptedClip(clip, strengths.clip)];
  }

  unmatched(model: Model, clip: Clip | undefined): string | undefined {
    const texts = clip === undefined ? [] : textTargetsOf(clip);
    const targets = [requireTarget(requireOwn(model).source.network), ...texts];
    const unmatched = unmatchedWarning(this.#lora, unmatchedModules(this.#lora, targets));
    const sentences = [this.#lora.note, leftOutInputs(this.#lora, targets), unmatched].filter(
      (sentence) => sentence !== undefined,
    );
    return sentences.length === 0 ? undefined : sentences.join(" ");
  }

  #adaptedNetwork(network: DiffusionNetwork, strength: number): DiffusionNetwork {
    const { inputs } = this.#lora;
    const taking = inputs === undefined || strength === 0 ? network : (network.taking?.(inputs) ?? network);
    const adapter = this.#adapter(requireTarget(taking), strength);
    return adapter === undefined ? network : taking.adapted!(adapter);
  }

  #adaptedClip(clip: Clip, strength: number): Clip {
    if (clip instanceof JoinedClip) return clip.changed((network) => this.#adapted(network, strength));
    const encoders = encodersOf(clip);
    const adapted = encoders.map(({ network }) => this.#adapted(requireTextEncoder(network), strength));
    const [first] = encoders;
    return first === undefined ? clip : new CheckpointClip({ ...first.source, encoders: adapted });
  }

  #adapted<Network extends AdaptableNetwork>(network: Network, strength: number): Network {
    const adapter = this.#adapter(network.target, strength);
    return adapter === undefined ? network : (network.adapted(adapter) as Network);
  }

  /** Changes of a network; undefined if there are none. */
  #adapter(target: LoraTarget, strength: number): Adapter | undefined {
    const changes = changesOf(this.#lora, target, strength);
    if (changes.size === 0) return undefined;
    return { key: `${strength} ${fileStateKey(this.#file)}`, file: this.#file, changes };
  }
}

/** A network of a clip. */
interface AdaptableNetwork {
  readonly target: LoraTarget;
  adapted(adapter: Adapter): AdaptableNetwork;
}

function textTargetsOf(clip: Clip): LoraTarget[] {
  const networks =
    clip instanceof JoinedClip
      ? Object.values(clip.networks)
      : encodersOf(clip).map(({ network }) => requireTextEncoder(network));
  return networks.map(({ target }: AdaptableNetwork) => target);
}

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
  new LatentkitError("host.missing", `${label} is an exported ONNX model: LoRAs cannot change its weights.`);

const encodersOf = ({ encoders }: Clip): CheckpointEncoder[] =>
  encoders.map((encoder) => {
    if (encoder instanceof CheckpointEncoder) return encoder;
    throw foreign("a clip");
  });

const foreign = (what: string): LatentkitError =>
  new LatentkitError(
    "host.missing",
    `host "checkpoint" loaded this LoRA, which cannot change ${what} of another host.`,
  );
