import type { UnetBlock, UnetConfig } from "#src/host/checkpoint/unet/build.js";

/** Structure of a UNet from the shapes of its weights; SD 1 has 8 heads, its relatives heads of 64. */
export function unetConfigOf(shapes: ReadonlyMap<string, readonly number[]>): UnetConfig {
  const keys = [...shapes.keys()];
  const side = (key: string, axis: number): number => shapes.get(key)![axis]!;
  const count = (prefix: string): number =>
    new Set(keys.filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length).split(".")[0])).size;
  const block = (key: string): UnetBlock => {
    const depth = count(`${key}.1.transformer_blocks.`);
    if (shapes.has(`${key}.0.op.weight`)) return { kind: "down", channels: side(`${key}.0.op.weight`, 0), depth };
    if (!shapes.has(`${key}.0.in_layers.0.weight`))
      return { kind: "conv", channels: side(`${key}.0.weight`, 0), depth };
    return { kind: "res", channels: side(`${key}.0.out_layers.3.weight`, 0), depth };
  };
  const blocks = (prefix: string): UnetBlock[] =>
    Array.from({ length: count(prefix) }, (_, index) => block(`${prefix}${index}`));
  const crossKey = keys.find((key) => key.endsWith("attn2.to_k.weight"))!;
  const linearProjection = shapes.get(keys.find((key) => key.endsWith("proj_in.weight"))!)!.length === 2;
  const label = shapes.get("label_emb.0.0.weight");
  return {
    inChannels: side("input_blocks.0.0.weight", 1),
    outChannels: shapes.has("out.2.weight") ? side("out.2.weight", 0) : 0,
    modelChannels: side("input_blocks.0.0.weight", 0),
    contextDim: side(crossKey, 1),
    linearProjection,
    ...(label === undefined ? {} : { labelDim: label[1]! }),
    heads: linearProjection ? { size: 64 } : { count: 8 },
    input: blocks("input_blocks."),
    middle: block("middle_block"),
    output: blocks("output_blocks.").map((one, index) => {
      const keysOfUpsample = [1, 2].map((position) => `output_blocks.${index}.${position}.conv.weight`);
      return { ...one, upsample: keysOfUpsample.some((key) => shapes.has(key)) };
    }),
  };
}

/** The entries of a map under a prefix, without it. */
export const under = <T>(prefix: string, map: ReadonlyMap<string, T>): Map<string, T> =>
  new Map(
    [...map]
      .filter(([key]) => key.startsWith(prefix))
      .map(([key, value]) => [key.slice(prefix.length), value] as const),
  );
