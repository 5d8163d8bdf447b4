import { LatentkitError } from "../../../base/errors.js";
import type { ModelHeader, Part } from "../recognition/part.js";
import { ModelPart } from "../session/model-part.js";
import type { Runtime } from "../session/runtime.js";
import type { StableDiffusionFamily, TextPart } from "../text-encoder/recognise.js";
import type { VaeConfig } from "../vae/build.js";
import { vaeOfCheckpoint } from "../vae/recognise.js";
import { placedWeights, quotedName, type WeightFile, type WeightMap } from "../weights/stored.js";
import type { ReadValues } from "../weights/values.js";
import type { DiffusionNetwork, NetworkSizes } from "./model.js";
import type { CheckpointSampling } from "./sampling.js";

/** A kind of network with the models that have it: how their files are recognised. */
export interface ModelFamily {
  /** Whether such a network is among the weights, complete or not. */
  has(weights: WeightMap): boolean;
  /**
   * Recognises a file that has one, in steps of some milliseconds. Afterwards every weight that the builders ask for
   * exists, with its shape. Throws model.unsupported for relatives, by name, and model.invalid.
   */
  parts(file: ModelHeader): Generator<undefined, CheckpointParts>;
}

/** The networks of a checkpoint, with facts of its family. A part that the file lacks is undefined, or missing in the list. */
export interface RecognisedCheckpoint {
  /** Name of the family: "sdxl". */
  readonly family: string;
  /** The family in words of its users: "SDXL". */
  readonly words: string;
  readonly sampling: CheckpointSampling;
  readonly network: NetworkPart;
  /**
   * In the order of their share in the context: SD "l" or "h", SDXL "l" and "g", its refiner "g"; Flux "l" and T5; SD 3 those
   * that the file has.
   */
  readonly textEncoders: readonly TextPart[];
  /** Number of text encoders that a whole clip has. */
  readonly encoderCount: number;
  /** Family whose layers of CLIP's encoders count; absent: they are all the same. */
  readonly clipFamily?: StableDiffusionFamily;
  /** Name of the family in the input `type` of loaders, if text encoders are read in other ways for others. */
  readonly clipType?: string;
  readonly vae?: Part<VaeConfig>;
  /** Whether the network takes a mask and a masked picture beside the latent. */
  readonly inpaint: boolean;
  /** Number of tensors in the file that no part uses, such as averages of training. */
  readonly ignored: number;
}

/** A checkpoint by its header; `sampling` reads marks that some files have. */
export interface CheckpointParts extends Omit<RecognisedCheckpoint, "sampling"> {
  sampling(read: ReadValues): CheckpointSampling | Promise<CheckpointSampling>;
}

/** The network of a checkpoint that predicts. */
export interface NetworkPart<Config = unknown> {
  /** The network in words: "UNet". */
  readonly what: string;
  readonly part: Part<Config>;
  /** The network that runs over the weights of the file. */
  open(runtime: Runtime, file: WeightFile): DiffusionNetwork;
}

/** A part with the class that runs it. */
export const networkPart = <Config>(
  what: string,
  part: Part<Config>,
  Network: new (runtime: Runtime, part: ModelPart<Config>) => DiffusionNetwork,
): NetworkPart<Config> => ({
  what,
  part,
  open: (runtime, file) => new Network(runtime, ModelPart.of(what, file, part)),
});

/** Error of a checkpoint that lacks a part, which a loader loads. */
export const absentPart = (name: string, part: string, loader: string): LatentkitError =>
  new LatentkitError("model.invalid", `Model ${quotedName(name)} contains no ${part}: load one with ${loader}.`);

export const absentVae = (name: string): LatentkitError => absentPart(name, "VAE", "VAELoader");

const runsNothing = async (): Promise<never> => {
  throw new TypeError("only the sizes of this network are known");
};
/** For networks of which only the sizes are read. */
const NO_RUNTIME: Runtime = {
  run: runsNothing,
  ports: runsNothing,
  describe: () => ({ threads: 0, networks: [] }),
};
const NO_STATE = { path: "", bytes: 0, modifiedNs: 0n, inode: 0n };

/** Facts about a network by which parts of other files fit it, from the header of its file. */
export function networkSizes(part: NetworkPart, file: ModelHeader): NetworkSizes {
  const network = part.open(NO_RUNTIME, { ...file, ...NO_STATE });
  const { label, outChannels, contextDim, widensContext, pooledWidth, places } = network;
  return { label, outChannels, contextDim, widensContext, pooledWidth, places };
}

/** The parts with the VAE of the file, and the number of tensors that none of them uses. */
export function withVae(file: ModelHeader, parts: Omit<CheckpointParts, "vae" | "ignored">): CheckpointParts {
  const vae = vaeOfCheckpoint(file);
  const towers = parts.textEncoders.flatMap((text) => (text.kind === "qwen2.5-vl" ? (text.tower ?? []) : []));
  const used = [...[parts.network, ...parts.textEncoders].map(({ part }): Part<unknown> => part), ...towers];
  const all = [...used, ...(vae === undefined ? [] : [vae])].flatMap(({ weights }) => placedWeights(weights));
  return { ...parts, vae, ignored: file.weights.size - new Set(all.map(({ key }) => key)).size };
}
