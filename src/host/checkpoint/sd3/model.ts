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
import type { LoraTarget } from "../lora/places.js";
import { timeEmbeddings } from "../networks/sinusoids.js";
import type { Adapter, ModelPart } from "../session/model-part.js";
import type { Runtime } from "../session/runtime.js";
import { buildSd3, type Sd3Config, sd3Work } from "./build.js";
import { sd3Places } from "./lora.js";

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
