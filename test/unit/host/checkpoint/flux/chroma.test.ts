import assert from "node:assert/strict";
import type { Tensor } from "latentkit";
import { buildFlux } from "#src/host/checkpoint/flux/build.js";
import { changeEmbeddings } from "#src/host/checkpoint/flux/model.js";
import { findFlux, fluxPart } from "#src/host/checkpoint/flux/recognise.js";
import { OnnxGraph } from "#src/host/checkpoint/onnx/graph.js";
import { CPU_TARGET, type Target } from "#src/host/checkpoint/onnx/target.js";
import { networkOf } from "#src/host/checkpoint/weights/network.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { CHROMA, fluxFeeds, latentOf } from "../../../../helpers/models/flux-feeds.js";
import { headerOf, type Shapes, withKeys } from "../../../../helpers/models/full-size.js";
import { fluxLayers, fluxWeights } from "../../../../helpers/models/golden-flux.js";
import { layerError } from "../../../../helpers/models/layers.js";
import { graphSession } from "../../../../helpers/models/session.js";

const FORMS: readonly (readonly [string, Target])[] = [
  ["fused", CPU_TARGET],
  ["plain", { attention: "plain", largestHead: 256, matMul: "transposed", convChannels: "fours", halfTypes: [] }],
];
/** That of the vectors' page: numbers of changes are embedded at hundreds of thousands of radians. */
const TOLERANCE = 1e-5;

describe("Chroma", () => {
  const folder = temporaryFolder();
  const { net, tensor } = fluxLayers("chroma");
  const weights = () => fluxWeights("diffusion_models/chroma", folder());

  for (const [form, target] of FORMS)
    it(`computes what the reference does, its changes too, ${form}`, async () => {
      const graph = new OnnxGraph("chroma", target);
      buildFlux(networkOf(graph, await weights()), CHROMA, (name, value) => {
        if (name === "distilled_guidance_layer") graph.output(value, name, "float", ["B", 17, CHROMA.width]);
      });
      const session = await graphSession(graph.encode({ overridable: false }));
      for (const each of net) {
        const { out, distilled_guidance_layer: changes } = await session.run(fluxFeeds(each, CHROMA, tensor));
        const expected: Tensor = tensor(each.out);
        assert.ok(layerError(latentOf(out!, expected, CHROMA), expected) < TOLERANCE, each.out);
        if (each.modulation_vectors === undefined) continue;
        const embedded = changeEmbeddings(each.t, CHROMA);
        assert.ok(layerError(embedded, tensor(each.approximator_in)) < TOLERANCE, each.approximator_in);
        assert.ok(layerError(changes!, tensor(each.modulation_vectors)) < TOLERANCE, each.modulation_vectors);
      }
      await session.release();
    });

  it("is recognised by its approximator, and takes every weight", async () => {
    const header = async (): Promise<Shapes> =>
      Object.fromEntries([...(await weights())].map(([key, { shape }]) => [key, shape]));
    const shapes = await header();
    const part = (own: Shapes) => {
      const file = headerOf(own);
      return fluxPart(file, findFlux(file.weights)!);
    };
    assert.deepEqual(part(shapes).config, CHROMA);
    assert.equal(part(shapes).weights.size, Object.keys(shapes).length);
    const inside = withKeys(shapes, (key) => `model.diffusion_model.${key}`);
    assert.deepEqual(part(inside).config, CHROMA);
    const radiance = { ...shapes, "nerf_blocks.0.norm.scale": [64] };
    await refuses(
      () => part(radiance),
      "model.unsupported",
      /expected a Chroma model, received a Chroma Radiance model/,
    );
    const odd = { ...shapes, "distilled_guidance_layer.in_proj.weight": [80, 60] };
    await refuses(() => part(odd), "model.invalid", /a multiple of 8 inputs, received 60/);
    const further = { ...shapes, "distilled_guidance_layer.layers.0.gate.weight": [1] };
    await refuses(() => part(further), "model.unsupported", /a Chroma model, received one .*layers\.0\.gate\.weight/);
    const gap = withKeys(shapes, (key) => (key.includes("layers.1.out_layer") ? undefined : key));
    await refuses(() => part(gap), "model.invalid", /layers\.1\.out_layer\.weight/);
  });
});
