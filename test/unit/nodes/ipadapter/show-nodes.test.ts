import assert from "node:assert/strict";
import { invokeNode, Tensor, validateGraph } from "latentkit";
import { refuses } from "../../../helpers/errors.js";
import { FILES, fileHost, type PatchableModel, patchable } from "../../../helpers/graph/file-host.js";
import { node } from "../../../helpers/graph/graph-nodes.js";

const host = fileHost();
const image = Tensor.full([2, 8, 8, 3], 0.5);
const clip_vision = FILES.clip_vision();
const ipadapter = FILES.ipadapter() as { withEncoder(encoder: unknown): unknown; isSdxl: boolean };
const usual = { weight: 0.5, start_at: 0, end_at: 1, embeds_scaling: "V only" };
const advanced = { ...usual, weight_type: "linear", combine_embeds: "concat" };

/** Pictures that a node has shown to a model. */
async function shown(key: string, inputs: Record<string, unknown>): Promise<Record<string, unknown>[]> {
  const model = await patchable();
  const { result } = await invokeNode(key, { model, ipadapter, image, clip_vision, ...inputs }, { host });
  return (result[0] as unknown as PatchableModel).patches.map(({ inputs }) => ({ ...inputs }));
}

const values = (x: unknown): number[] => [...(x as Tensor).data];

describe("nodes that show pictures", () => {
  it("pass embeddings, weights, range and mask on", async () => {
    const mask = Tensor.full([1, 4, 4], 1);
    const [one, ...others] = await shown("IPAdapterAdvanced", { ...advanced, start_at: 0.2, attn_mask: mask });
    assert.equal(others.length, 0);
    assert.deepEqual(
      [values(one!.embeds), values(one!.negative)],
      [
        [0.5, 1, 0.5, 1],
        [0, 0, 0, 0],
      ],
    );
    assert.deepEqual([one!.start, one!.end, one!.isPerLatent, one!.hasMiddle], [0.2, 1, false, false]);
    assert.deepEqual(one!.weights, new Array(16).fill(0.5));
    assert.deepEqual((one!.mask as Tensor).shape, [1, 4, 4]);
  });

  it("leave a model as it is if nothing has a weight", async () => {
    assert.deepEqual(await shown("IPAdapterAdvanced", { ...advanced, weight: 0 }), []);
  });

  it("combine pictures before they are shown, and take a negative one", async () => {
    const image_negative = Tensor.full([1, 8, 8, 3], 0.25);
    const [one] = await shown("IPAdapterAdvanced", { ...advanced, combine_embeds: "add", image_negative });
    assert.deepEqual(
      [values(one!.embeds), values(one!.negative)],
      [
        [1, 2],
        [0.25, 1],
      ],
    );
  });

  it("show each latent its own picture in a batch", async () => {
    const [one] = await shown("IPAdapterBatch", { ...usual, weight_type: "linear", encode_batch_size: 0 });
    assert.deepEqual([one!.isPerLatent, (one!.embeds as Tensor).shape[0]], [true, 2]);
  });

  it("swap the sides of what precise types take away", async () => {
    const [style, away] = await shown("IPAdapterPreciseStyleTransfer", { ...advanced, style_boost: 2 });
    assert.deepEqual([style!.isSwapped, away!.isSwapped], [false, true]);
    assert.deepEqual((away!.weights as number[]).slice(3, 7), [0, 0.5, 2, 0]);
    assert.equal((await shown("IPAdapterPreciseComposition", { ...advanced, composition_boost: 0 })).length, 1);
  });

  it("keep the old node's scalings, middle and mask", async () => {
    const old = { ...usual, noise: 0, weight_type: "channel penalty", unfold_batch: true };
    const [one] = await shown("IPAdapterApply", old);
    assert.deepEqual(
      [one!.scaling, one!.hasMiddle, one!.maskMethod, one!.isPerLatent],
      ["K+mean(V) w/ C penalty", true, "bicubic", true],
    );
    await refuses(shown("IPAdapterApply", { ...old, noise: 0.1 }), "input.invalid", /input "noise": expected 0/);
  });

  it("take the encoder of an adapter that came with one", async () => {
    const loaded = ipadapter.withEncoder(clip_vision);
    const inputs = { weight: 1, start_at: 0, end_at: 1, weight_type: "prompt is more important", ipadapter: loaded };
    const [one] = await shown("IPAdapter", inputs);
    assert.ok(Math.abs((one!.weights as number[])[0]! - 0.05) < 1e-9);
    const without = shown("IPAdapter", { ...inputs, ipadapter });
    await refuses(without, "value.invalid", /input "ipadapter": expected an ipadapter of IPAdapterUnifiedLoader/);
    const none = shown("IPAdapterAdvanced", { ...advanced, clip_vision: undefined });
    await refuses(none, "input.missing", /input "clip_vision": expected a CLIP vision encoder/);
  });

  it("show the tiles of a picture, each in its place", async () => {
    const tiledInputs = { ...advanced, image: Tensor.full([1, 256, 512, 3], 0.5), sharpening: 0 };
    const all = await shown("IPAdapterTiled", tiledInputs);
    assert.deepEqual(
      all.map(({ mask }) => [...(mask as Tensor).shape]),
      [
        [1, 256, 512],
        [1, 256, 512],
      ],
    );
    await refuses(
      shown("IPAdapterTiled", { ...tiledInputs, image }),
      "value.invalid",
      /input "image": expected one picture/,
    );
    await refuses(
      shown("IPAdapterTiled", { ...tiledInputs, image: Tensor.zeros([1, 2, 33, 3]) }),
      "value.invalid",
      /input "image": expected a picture at most 16 times as long as it is wide/,
    );
    await refuses(
      shown("IPAdapterTiled", { ...tiledInputs, sharpening: 0.5 }),
      "input.invalid",
      /input "sharpening": expected 0 \(latentkit does not sharpen tiles\), received 0\.5/,
    );
  });

  it("refuse a mask beside the tiles, in validation too", async () => {
    const mask = Tensor.full([1, 4, 4], 1);
    const tiles = { ...advanced, image: Tensor.full([1, 256, 512, 3], 0.5), sharpening: 0 };
    const expected = /input "attn_mask": expected no mask \(the tiles have their own\)/;
    await refuses(shown("IPAdapterTiled", { ...tiles, attn_mask: mask }), "value.invalid", expected);
    const sentencesOf = (key: string, inputs: object) => {
      const graph = {
        "1": node("SolidMask", { value: 1, width: 8, height: 8 }),
        "2": node(key, { ...advanced, ...inputs }),
      };
      const { errors = [] } = validateGraph(graph, { host, targets: ["2"] }).nodeErrors["2"] ?? {};
      return errors.filter(({ code }) => code === "input.invalid").map(({ sentence }) => sentence);
    };
    assert.deepEqual(sentencesOf("IPAdapterTiled", { sharpening: 0.5, attn_mask: ["1", 0] }), [
      'Node 2 (IPAdapterTiled), input "sharpening": expected 0 (latentkit does not sharpen tiles), received 0.5.',
      'Node 2 (IPAdapterTiled), input "attn_mask": expected no mask (the tiles have their own), received a link.',
    ]);
    assert.deepEqual(sentencesOf("IPAdapterTiled", { sharpening: 0 }), []);
    assert.deepEqual(sentencesOf("IPAdapterAdvanced", { attn_mask: ["1", 0] }), []);
  });

  it("refuse style and composition of Stable Diffusion 1, and wrong lists of weights", async () => {
    const both = { ...advanced, weight_style: 1, weight_composition: 1, expand_style: false };
    const parts = { image_style: image, image_composition: image };
    await refuses(shown("IPAdapterStyleComposition", { ...both, ...parts }), "value.invalid", /an IPAdapter of SDXL/);
    const listed = { ...advanced, weight_faceidv2: 1, layer_weights: "16:1" };
    await refuses(shown("IPAdapterMS", listed), "value.invalid", /of transformers below 16, received "16:1"/);
  });

  it("show embeddings that were combined before", async () => {
    const embed = async (weight: number) =>
      (await invokeNode("IPAdapterEncoder", { ipadapter, image, weight, clip_vision }, { host })).result;
    const [pos, neg] = await embed(2);
    const { result } = await invokeNode(
      "IPAdapterCombineEmbeds",
      { embed1: pos, method: "average", embed2: pos },
      { host },
    );
    assert.deepEqual(values(result[0]), [1, 2]);
    const embeds = { ...usual, weight_type: "linear", pos_embed: result[0], neg_embed: neg };
    const [one] = await shown("IPAdapterEmbeds", embeds);
    assert.deepEqual(
      [values(one!.embeds), values(one!.negative)],
      [
        [1, 2],
        [0, 0],
      ],
    );
  });
});
