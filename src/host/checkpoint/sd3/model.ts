import { LatentkitError } from "../../../base/errors.js";
import { repeated } from "../../../tensor/parts.js";
import type { Tensor } from "../../../tensor/tensor.js";
import type { Conditioning, SamplingRun } from "../../types.js";
import { pooledText } from "../diffusion/conditioning.js";
import {
  type DiffusionNetwork,
  haveOneLength,
  type NamedTensors,
  type NetworkCall,
  type NetworkRun,
} from "../diffusion/model.js";
import { patchesOf, pictureOf } from "../flux/patches.js";
import {
  type LoraTarget,
  type ModulePlaces,
  type NamedPlaces,
  ownPlaces,
  rowsOf,
  thirdOf,
  transformerNames,
} from "../lora/places.js";
import { timeEmbeddings } from "../networks/sinusoids.js";
import type { Adapter, ModelPart } from "../session/model-part.js";
import type { Runtime } from "../session/runtime.js";
import type { WeightMap } from "../weights/stored.js";
import { buildSd3, type Sd3Config, sd3Work } from "./build.js";

/** Pixels along a side of a patch. */
const PATCH_PIXELS = 16;

/** A transformer of Stable Diffusion 3 whose graph is built over the weights of a file. */
export class BuiltSd3 implements DiffusionNetwork {
  readonly label: string;
  readonly inChannels: number;
  readonly outChannels: number;
  readonly contextDim: number;
  // decisions: The model widens SD 3's contexts
  readonly widensContext = true;

  constructor(
    readonly runtime: Runtime,
    readonly part: ModelPart<Sd3Config>,
  ) {
    const { label, config } = part;
    this.label = label;
    this.inChannels = config.channels;
    this.outChannels = config.channels;
    this.contextDim = config.contextWidth;
  }

  get pooledWidth(): number {
    return this.part.config.pooledWidth;
  }

  get target(): LoraTarget {
    return { weights: this.part.weights, places: sd3Places };
  }

  adapted(adapter: Adapter): BuiltSd3 {
    return new BuiltSd3(this.runtime, this.part.adapted(adapter));
  }

  canShare(entries: Conditioning): boolean {
    return haveOneLength(entries);
  }

  labelInputs(entry: Conditioning[number]): NamedTensors {
    return { y: pooledText(entry, this.part.config.pooledWidth) };
  }

  forRun({ steps }: SamplingRun): NetworkRun {
    return { predict: (call) => this.#predict(call, steps) };
  }

  async #predict({ x, timestep, context, labels, entry, signal }: NetworkCall, calls: number): Promise<Tensor> {
    if (entry[1].control !== undefined && entry[1].control !== null)
      throw new LatentkitError("host.missing", `${this.label} does not support ControlNets.`);
    const [items, , height, width] = x.shape as [number, number, number, number];
    const { config } = this.part;
    const places = placesOf([Math.ceil(height / 2), Math.ceil(width / 2)], config.side, this.label);
    const feeds = {
      x: patchesOf(x, "cells-of-channels"),
      places: { int64: places, shape: [places.length] },
      time: repeated(timeEmbeddings([Math.fround(timestep)]), items),
      context,
      ...labels,
    };
    const session = this.part.session("SD 3", (network) => buildSd3(network, config), { work: sd3Work(config) });
    const options = { signal, keep: ["context", ...Object.keys(labels)], calls };
    const { out } = await this.runtime.run(session, feeds, options);
    return pictureOf(out!, [height, width], "channels-of-cells");
  }
}

/**
 * Rows of the table of positions [side · side] for rows x columns patches, row by row: those in its middle. Fails with
 * tensor.bad-shape for more than it has.
 *
 * @internal
 */
export function placesOf([rows, columns]: readonly [number, number], side: number, label: string): number[] {
  if (rows > side || columns > side) {
    const most = `at most ${side * PATCH_PIXELS} pixels on a side`;
    const received = `${columns * PATCH_PIXELS} x ${rows * PATCH_PIXELS}`;
    throw new LatentkitError("tensor.bad-shape", `${label}: expected a picture of ${most}, received ${received}.`);
  }
  const [top, left] = [Math.floor((side - rows) / 2), Math.floor((side - columns) / 2)];
  return Array.from({ length: rows * columns }, (_, index) => {
    const row = top + Math.floor(index / columns);
    return row * side + left + (index % columns);
  });
}

const BLOCK = /^joint_blocks\.(\d+)\.(.+)$/;

/** Layers of a transformer of Stable Diffusion 3 by the names of LoRA files: their own, and those of diffusers. @internal */
export function sd3Places(weights: WeightMap): NamedPlaces {
  const own = [...ownPlaces(weights)];
  const last = Math.max(-1, ...own.map(([module]) => Number(BLOCK.exec(module)?.[1] ?? -1)));
  return own.flatMap(([module, at]) =>
    [[module, at] as const, ...diffusersPlaces(module, at, weights, last)].map(
      ([name, places]) => [transformerNames(name), places] as const,
    ),
  );
}

/** A layer under its names in diffusers, of which a whole of three has one for each. */
function diffusersPlaces(
  module: string,
  at: ModulePlaces,
  weights: WeightMap,
  last: number,
): readonly (readonly [string, ModulePlaces])[] {
  const [, number, layer] = BLOCK.exec(module) ?? [];
  const rows = weights.get(at.weight?.key ?? "")?.shape[0] ?? 0;
  const halves = () =>
    rowsOf(at, [
      [rows / 2, rows],
      [0, rows / 2],
    ]);
  if (layer === undefined) {
    const name = nameOf(AROUND, module);
    return name === undefined ? [] : [[name, name === SWAPPED ? halves() : at]];
  }
  const block = `transformer_blocks.${number}`;
  const thirds = Object.hasOwn(THIRDS, layer) ? THIRDS[layer]! : [];
  const name = nameOf(IN_BLOCK, layer);
  // of the text's last stream diffusers has the scale before the shift
  const isSwapped = name === "norm1_context.linear" && Number(number) === last;
  return [
    ...thirds.map((part, index) => [`${block}.${part}`, rowsOf(at, thirdOf(rows, index as 0 | 1 | 2))] as const),
    ...(name === undefined ? [] : [[`${block}.${name}`, isSwapped ? halves() : at] as const]),
  ];
}

const nameOf = (names: Readonly<Record<string, string>>, layer: string): string | undefined =>
  Object.hasOwn(names, layer) ? names[layer] : undefined;

/** Layer whose scale stands before its shift in diffusers. */
const SWAPPED = "norm_out.linear";
const AROUND: Readonly<Record<string, string>> = {
  "x_embedder.proj": "pos_embed.proj",
  context_embedder: "context_embedder",
  "t_embedder.mlp.0": "time_text_embed.timestep_embedder.linear_1",
  "t_embedder.mlp.2": "time_text_embed.timestep_embedder.linear_2",
  "y_embedder.mlp.0": "time_text_embed.text_embedder.linear_1",
  "y_embedder.mlp.2": "time_text_embed.text_embedder.linear_2",
  "final_layer.linear": "proj_out",
  "final_layer.adaLN_modulation.1": SWAPPED,
};
const IN_BLOCK: Readonly<Record<string, string>> = {
  "x_block.attn.proj": "attn.to_out.0",
  "context_block.attn.proj": "attn.to_add_out",
  "x_block.attn2.proj": "attn2.to_out.0",
  "x_block.attn.ln_q": "attn.norm_q",
  "x_block.attn.ln_k": "attn.norm_k",
  "context_block.attn.ln_q": "attn.norm_added_q",
  "context_block.attn.ln_k": "attn.norm_added_k",
  "x_block.attn2.ln_q": "attn2.norm_q",
  "x_block.attn2.ln_k": "attn2.norm_k",
  "x_block.mlp.fc1": "ff.net.0.proj",
  "x_block.mlp.fc2": "ff.net.2",
  "context_block.mlp.fc1": "ff_context.net.0.proj",
  "context_block.mlp.fc2": "ff_context.net.2",
  "x_block.adaLN_modulation.1": "norm1.linear",
  "context_block.adaLN_modulation.1": "norm1_context.linear",
};
/** Layers of diffusers that follow each other in one. */
const THIRDS: Readonly<Record<string, readonly string[]>> = {
  "x_block.attn.qkv": ["attn.to_q", "attn.to_k", "attn.to_v"],
  "context_block.attn.qkv": ["attn.add_q_proj", "attn.add_k_proj", "attn.add_v_proj"],
  "x_block.attn2.qkv": ["attn2.to_q", "attn2.to_k", "attn2.to_v"],
};
