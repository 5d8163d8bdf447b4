import assert from "node:assert/strict";
import { type Conditioning, invokeNode, Tensor } from "latentkit";
import { refuses } from "../../../helpers/errors.js";

describe("ConditioningAverage", () => {
  it("names the conditioning whose tensor has not three axes", async () => {
    const [flat, whole] = [[[Tensor.zeros([77, 8]), {}]], [[Tensor.zeros([1, 77, 8]), {}]]];
    const average = (conditioning_to: unknown, conditioning_from: unknown) =>
      invokeNode("ConditioningAverage", { conditioning_to, conditioning_from, conditioning_to_strength: 0.5 });
    await refuses(average(flat, whole), "input.invalid", /"conditioning_to": expected .* received .* \[77, 8\]/);
    await refuses(
      average(whole, flat),
      "input.invalid",
      /"conditioning_from": expected a conditioning \[B, tokens, 8\]/,
    );
  });
});

describe("ConditioningCombine", () => {
  const entries = (count: number): Conditioning => Array.from({ length: count }, () => [Tensor.zeros([1, 1, 1]), {}]);

  it("refuses more entries than 4096, which a chain of it would double at each", async () => {
    const { result } = await invokeNode("ConditioningCombine", {
      conditioning_1: entries(2048),
      conditioning_2: entries(2048),
    });
    assert.equal((result[0] as Conditioning).length, 4096);
    const more = { conditioning_1: entries(2048), conditioning_2: entries(2049) };
    await refuses(invokeNode("ConditioningCombine", more), "input.invalid", /conditioning_2.*at most 4096 entries/);
  });
});

describe("ConditioningConcat", () => {
  it("names the conditioning whose tensor has not three axes", async () => {
    const [flat, whole] = [[[Tensor.zeros([77, 8]), {}]], [[Tensor.zeros([1, 77, 8]), {}]]];
    const concat = (conditioning_to: unknown, conditioning_from: unknown) =>
      invokeNode("ConditioningConcat", { conditioning_to, conditioning_from });
    await refuses(concat(flat, whole), "input.invalid", /"conditioning_to": expected .* received .* \[77, 8\]/);
    await refuses(concat(whole, flat), "input.invalid", /"conditioning_from": expected .* \[1, tokens, 8\]/);
  });
});

describe("unCLIPConditioning", () => {
  const tokens = Tensor.zeros([1, 77, 4]);
  const run = async (conditioning: Conditioning, strength: number) => {
    const inputs = { conditioning, clip_vision_output: { image: 1 }, strength, noise_augmentation: 0.25 };
    return (await invokeNode("unCLIPConditioning", inputs)).result[0] as Conditioning;
  };

  it("appends a picture to those of each entry", async () => {
    const first = await run([[tokens, { a: 1 }]], 0.5);
    const picture = { clip_vision_output: { image: 1 }, strength: 0.5, noise_augmentation: 0.25 };
    assert.deepEqual(first[0]![1], { a: 1, unclip_conditioning: [picture] });
    assert.equal(first[0]![0], tokens);
    const second = await run(first, 2);
    assert.deepEqual(second[0]![1].unclip_conditioning, [picture, { ...picture, strength: 2 }]);
  });

  it("changes nothing at a strength of 0", async () => {
    assert.deepEqual(await run([[tokens, {}]], 0), [[tokens, {}]]);
  });
});

describe("FluxGuidance", () => {
  const conditioning: Conditioning = [
    [Tensor.zeros([1, 77, 4]), { a: 1 }],
    [Tensor.zeros([1, 77, 4]), { guidance: 9 }],
  ];

  it("sets the strength of every entry", async () => {
    const { result } = await invokeNode("FluxGuidance", { conditioning, guidance: 2.5 });
    assert.deepEqual(
      (result[0] as Conditioning).map(([, options]) => options),
      [{ a: 1, guidance: 2.5 }, { guidance: 2.5 }],
    );
    assert.equal((result[0] as Conditioning)[0]![0], conditioning[0]![0]);
  });

  it("refuses a strength below 0", async () => {
    await refuses(invokeNode("FluxGuidance", { conditioning, guidance: -1 }), "input.below-minimum", /guidance/);
  });
});

describe("FluxDisableGuidance", () => {
  it("takes the strength from every entry", async () => {
    const conditioning: Conditioning = [[Tensor.zeros([1, 77, 4]), { a: 1, guidance: 3.5 }]];
    const { result } = await invokeNode("FluxDisableGuidance", { conditioning });
    assert.deepEqual((result[0] as Conditioning)[0]![1], { a: 1, guidance: null });
  });
});

describe("FluxKontextMultiReferenceLatentMethod", () => {
  const run = async (method: string) => {
    const conditioning: Conditioning = [[Tensor.zeros([1, 77, 4]), { a: 1 }]];
    const inputs = { conditioning, reference_latents_method: method };
    const { result } = await invokeNode("FluxKontextMultiReferenceLatentMethod", inputs);
    return (result[0] as Conditioning)[0]![1];
  };

  it("names the method in every entry", async () => {
    assert.deepEqual(await run("index"), { a: 1, reference_latents_method: "index" });
    assert.deepEqual(await run("uxo/uno"), { a: 1, reference_latents_method: "uxo" });
    await refuses(run("other"), "input.not-in-list", /reference_latents_method/);
  });
});

describe("ReferenceLatent", () => {
  const [first, second] = [Tensor.zeros([1, 16, 2, 2]), Tensor.full([1, 16, 4, 2], 1)];
  const run = async (conditioning: Conditioning, samples?: Tensor) => {
    const inputs = samples === undefined ? { conditioning } : { conditioning, latent: { samples } };
    return (await invokeNode("ReferenceLatent", inputs)).result[0] as Conditioning;
  };

  it("appends a latent to those of each entry, and passes a conditioning on without one", async () => {
    const one = await run([[Tensor.zeros([1, 77, 4]), { a: 1 }]], first);
    const two = await run(one, second);
    const references = two[0]![1].reference_latents as Tensor[];
    assert.equal(references.length, 2);
    assert.ok(references[0] === first && references[1] === second);
    assert.deepEqual((one[0]![1].reference_latents as Tensor[]).length, 1);
    assert.equal(await run(two), two);
  });
});
