import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Tensor } from "latentkit";
import { rotationTables, timeEmbeddings } from "#src/host/checkpoint/networks/sinusoids.js";
import { OnnxGraph, type Value } from "#src/host/checkpoint/onnx/graph.js";
import { CPU_TARGET, type Target } from "#src/host/checkpoint/onnx/target.js";
import { networkOf } from "#src/host/checkpoint/weights/network.js";
import { buildZImage, PADDING, type ZImageConfig } from "#src/host/checkpoint/z-image/build.js";
import { zImagePositions } from "#src/host/checkpoint/z-image/model.js";
import { originalLayout } from "#src/host/checkpoint/z-image/names.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { flowLayers, flowWeights } from "../../../../helpers/models/golden-flow.js";
import { layerError } from "../../../../helpers/models/layers.js";
import { graphSession } from "../../../../helpers/models/session.js";

const CONFIG: ZImageConfig = {
  channels: 16,
  width: 48,
  heads: 3,
  headSize: 16,
  captionWidth: 32,
  layers: 3,
  noiseRefiners: 2,
  contextRefiners: 2,
  mlp: 128,
  timeWidth: 32,
  timeHidden: 80,
};
const AXES = [4, 6, 6];
const THETA = 256;
const PLAIN: Target = {
  attention: "plain",
  largestHead: 256,
  matMul: "transposed",
  convChannels: "fours",
  halfTypes: [],
};
const TOLERANCE = 5e-6;

describe("buildZImage", () => {
  const folder = temporaryFolder();
  const { cases, tensor } = flowLayers("z_image");

  for (const [layout, file] of [
    ["original", "z_image_tiny"],
    ["diffusers", "z_image_tiny_diffusers"],
  ] as const)
    for (const [form, target] of [
      ["fused", CPU_TARGET],
      ["plain", PLAIN],
    ] as const)
      it(`computes what the reference does, keys of the ${layout} code, ${form}`, async () => {
        const weights = originalLayout(await flowWeights(`diffusion_models/${file}`, folder()));
        const graph = new OnnxGraph("z-image", target);
        buildZImage(networkOf(graph, weights), CONFIG);
        const session = await graphSession(graph.encode({ overridable: false }));
        for (const each of cases) {
          const { out } = await session.run(feedsOf(each));
          const { shape } = tensor(each.x);
          assert.ok(layerError(cropped(out!, shape), tensor(each.out)) < TOLERANCE, each.x);
        }
        await session.release();
      });

  it("has the reference's value after every part", async () => {
    const weights = await flowWeights("diffusion_models/z_image_tiny", folder());
    const graph = new OnnxGraph("z-image");
    const expected: Record<string, string> = cases[0].after;
    const traced: string[] = [];
    const trace = (name: string, value: Value): void => {
      if (expected[name] === undefined) return;
      traced.push(name);
      graph.output(value, name, "float", tensor(expected[name]).shape);
    };
    buildZImage(networkOf(graph, weights), CONFIG, { trace });
    // norms of single heads have no output of their own
    const missing = Object.keys(expected).filter((name) => !traced.includes(name));
    assert.deepEqual(missing, ["layers.0.attention.q_norm", "layers.0.attention.k_norm"]);
    const session = await graphSession(graph.encode({ overridable: false }));
    const outputs = await session.run(feedsOf(cases[0]));
    for (const name of traced) assert.ok(layerError(outputs[name]!, tensor(expected[name]!)) < TOLERANCE, name);
    await session.release();
  });

  it("converts streamed weights when their turn comes, not all at once", async () => {
    const weights = await flowWeights("diffusion_models/z_image_tiny", folder());
    const [together, inTurn] = await Promise.all(
      [false, true].map(async (isStreamed) => {
        const graph = new OnnxGraph("z-image", CPU_TARGET, isStreamed);
        buildZImage(networkOf(graph, weights), CONFIG);
        const encoded = graph.encode({ overridable: true });
        const profileFilePrefix = join(folder(), `profile-${isStreamed}`);
        const session = await graphSession(encoded, { enableProfiling: true, profileFilePrefix });
        await session.run(feedsOf(cases[0]));
        session.endProfiling();
        await session.release();
        const name = readdirSync(folder()).find((file) => file.startsWith(`profile-${isStreamed}`))!;
        return mostWaiting(JSON.parse(readFileSync(join(folder(), name), "utf8")));
      }),
    );
    assert.ok(together! > 20, `${together} weights at once without turns`);
    assert.ok(inTurn! <= 4, `${inTurn} weights at once`);
  });

  it("refuses a file without one of its weights", async () => {
    const weights = new Map(await flowWeights("diffusion_models/z_image_tiny", folder()));
    weights.delete("layers.2.feed_forward.w3.weight");
    const network = networkOf(new OnnxGraph("z-image"), weights);
    await refuses(
      () => buildZImage(network, CONFIG),
      "model.invalid",
      /"layers\.2\.feed_forward\.w3\.weight" is missing/,
    );
  });

  // biome-ignore lint/suspicious/noExplicitAny: a case of the vectors
  function feedsOf({ x, context, sigma }: any): Record<string, Tensor> {
    const latent = tensor(x);
    const caption = tensor(context);
    const [items, channels, height, width] = latent.shape as [number, number, number, number];
    const [rows, columns] = [Math.ceil(height / 2), Math.ceil(width / 2)];
    const even = Tensor.zeros([items, channels, 2 * rows, 2 * columns]);
    // an odd side begins again at its end
    for (const [i] of even.data.entries()) {
      const [plane, row, column] = [
        Math.floor(i / (4 * rows * columns)),
        Math.floor(i / (2 * columns)) % (2 * rows),
        i % (2 * columns),
      ];
      even.data[i] = latent.data[(plane * height + (row % height)) * width + (column % width)]!;
    }
    const positions = zImagePositions(caption.shape[1]!, [rows, columns], PADDING);
    const [ofCaption, ofImage] = [positions.caption, positions.image].map((each) => rotationTables(each, AXES, THETA));
    const times = sigma.map((value: number) => Math.fround(Math.fround(1 - Math.fround(value)) * 1000));
    return {
      x: even,
      context: caption,
      embedding: timeEmbeddings(times),
      caption_cos: ofCaption!.cos,
      caption_sin: ofCaption!.sin,
      image_cos: ofImage!.cos,
      image_sin: ofImage!.sin,
    };
  }
});

interface ProfileEvent {
  readonly name: string;
  readonly args?: { readonly op_name: string; readonly output_type_shape: readonly { readonly float?: number[] }[] };
}

/** Most matrices that are float32 while no product has taken them. */
function mostWaiting(events: readonly ProfileEvent[]): number {
  let [waiting, most] = [0, 0];
  for (const { name, args } of events) {
    if (!name.endsWith("_kernel_time") || args === undefined) continue;
    const sides = args.output_type_shape[0]?.float ?? [];
    if (args.op_name === "Cast" && sides.length === 2 && sides[0]! > 1) waiting += 1;
    if (args.op_name === "FusedMatMul") waiting -= 1;
    most = Math.max(most, waiting);
  }
  return most;
}

/** The first rows and columns of planes. */
function cropped(planes: Tensor, shape: readonly number[]): Tensor {
  const [, , height, width] = planes.shape as [number, number, number, number];
  const [, , rows, columns] = shape as [number, number, number, number];
  const out = Tensor.zeros(shape);
  for (const [i] of out.data.entries()) {
    const [plane, row, column] = [Math.floor(i / (rows * columns)), Math.floor(i / columns) % rows, i % columns];
    out.data[i] = planes.data[(plane * height + row) * width + column]!;
  }
  return out;
}
