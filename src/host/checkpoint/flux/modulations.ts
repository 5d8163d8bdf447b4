import type { Trace } from "../networks/layers.js";
import { modulation, split } from "../networks/transformer-layers.js";
import type { Value } from "../onnx/graph.js";
import type { Network } from "../weights/network.js";
import type { Modulation, Streams } from "./blocks.js";
import { FLUX_KINDS, type FluxConfig } from "./config.js";

/** Changes of a stream in a double block: for its attention, then for its MLP. */
type Pair = readonly [Modulation, Modulation];

/** Changes of tokens in each block, and before the last layer. */
export interface Modulations {
  double(index: number): Streams<Pair>;
  single(index: number): Modulation;
  last(): Omit<Modulation, "gate">;
}

/** The changes that layers make of a vector [B, width]: each block's own layers, or three for all blocks. */
export function modulationsOf(
  network: Network,
  { kind, width }: Pick<FluxConfig, "kind" | "width">,
  vector: Value,
  trace: Trace,
): Modulations {
  const { bias, modulations } = FLUX_KINDS[kind];
  const made = (key: string, count: number): readonly Value[] => {
    const all = modulation(network, key, vector, [width, count], bias);
    trace(key, all);
    return split(network.graph, all, new Array<number>(count).fill(width));
  };
  const pair = (key: string): Pair => {
    const parts = made(key, 6);
    return [changeOf(parts), changeOf(parts.slice(3))];
  };
  const both = (keyOf: (stream: "img" | "txt") => string): Streams<Pair> => ({
    img: pair(keyOf("img")),
    txt: pair(keyOf("txt")),
  });
  const last = (): Omit<Modulation, "gate"> => {
    const [shift, scale] = made("final_layer.adaLN_modulation.1", 2);
    return { shift: shift!, scale: scale! };
  };
  if (modulations === "own")
    return {
      double: (index) => both((stream) => `double_blocks.${index}.${stream}_mod.lin`),
      single: (index) => changeOf(made(`single_blocks.${index}.modulation.lin`, 3)),
      last,
    };
  const inDouble = both((stream) => `double_stream_modulation_${stream}.lin`);
  const inSingle = changeOf(made("single_stream_modulation.lin", 3));
  return { double: () => inDouble, single: () => inSingle, last };
}

function changeOf([shift, scale, gate]: readonly Value[]): Modulation {
  return { shift: shift!, scale: scale!, gate: gate! };
}
