import assert from "node:assert/strict";
import { type Conditioning, invokeNode, Tensor } from "latentkit";
import { encodePlain } from "#src/host/prompt/encode.js";
import { refuses, rejectsAs } from "../../../helpers/errors.js";
import { enlarged, FILES, layeredClip } from "../../../helpers/graph/file-host.js";
import { describePatch } from "../../../helpers/graph/patch-tests.js";
import { assertClose, assertSameBits } from "../../../helpers/tensor/bits.js";

const tokens = Tensor.zeros([1, 77, 8]);
const image = Tensor.full([1, 16, 16, 3], 0.5);

describe("ControlNetApply", () => {
  const apply = async (conditioning: Conditioning, control_net: object, strength: number) =>
    (await invokeNode("ControlNetApply", { conditioning, control_net, image, strength })).result[0];

  it("adds its control to each entry, for the negative side too", async () => {
    const net = {};
    const entries: Conditioning = [
      [tokens, { strength: 0.5 }],
      [tokens, {}],
    ];
    const [first, second] = await apply(entries, net, 0.75);
    const control = { net, hint: image, strength: 0.75, start: 0, end: 1, previous: undefined };
    assert.deepEqual(first, [tokens, { strength: 0.5, control, control_apply_to_uncond: true }]);
    const { control: own } = first![1] as { control: { net: object; hint: Tensor } };
    assert.equal(own.net, net);
    assert.equal(own.hint, image);
    assert.equal(second![1].control, own, "one object, so that one call evaluates both");
    assert.deepEqual(entries[1]![1], {});
  });

  it("keeps the control of an entry as the one before", async () => {
    const [one, two] = [{ a: 1 }, { b: 2 }];
    const before = await apply([[tokens, {}]], one, 1);
    const [entry] = await apply([...before, [tokens, {}]], two, 0.5);
    const { net, previous } = entry![1].control as { net: object; previous: object };
    assert.equal(net, two);
    assert.equal(previous, before[0]![1].control);
  });

  it("returns the conditioning itself if the strength is 0", async () => {
    const entries: Conditioning = [[tokens, {}]];
    assert.equal(await apply(entries, {}, 0), entries);
  });
});

const [positive, negative]: Conditioning[] = [[[tokens, { area: [1, 1, 0, 0] }]], [[tokens, {}]]];
const vae = { encode: async (x: Tensor) => x, decode: async (x: Tensor) => x };
const both = { positive, negative, control_net: {}, image, vae, strength: 1, start_percent: 0, end_percent: 1 };

for (const key of ["ControlNetApplyAdvanced", "ControlNetApplySD3"]) {
  describe(key, () => {
    const apply = async (inputs: object) => (await invokeNode(key, { ...both, ...inputs })).result as Conditioning[];

    it("adds one control to both sides, for a part of sampling", async () => {
      const [first, second] = await apply({ strength: 2, start_percent: 0.25, end_percent: 0.75 });
      const control = { net: {}, hint: image, strength: 2, start: 0.25, end: 0.75, vae, previous: undefined };
      assert.deepEqual(first, [[tokens, { area: [1, 1, 0, 0], control, control_apply_to_uncond: false }]]);
      assert.equal(second![0]![1].control, first![0]![1].control);
      assert.deepEqual(negative, [[tokens, {}]]);
    });

    it("returns both sides themselves if the strength is 0", async () => {
      assert.deepEqual(await apply({ strength: 0 }), [positive, negative]);
    });

    it("refuses a strength beyond its bounds", async () => {
      await refuses(apply({ strength: 10.5 }), "input.above-maximum", /strength/);
    });

    it(key === "ControlNetApplySD3" ? "needs a vae" : "needs no vae", async () => {
      const applied = apply({ vae: undefined });
      if (key === "ControlNetApplySD3") return void (await refuses(applied, "input.missing", /vae/));
      const [side] = await applied;
      assert.equal((side![0]![1] as { control: { vae: unknown } }).control.vae, undefined);
    });
  });
}

describe("ControlNetInpaintingAliMamaApply", () => {
  it("adds one control to both sides, without its mask", async () => {
    const inputs = { ...both, mask: Tensor.full([1, 16, 16], 1), strength: 0.5 };
    const { result } = await invokeNode("ControlNetInpaintingAliMamaApply", inputs);
    const [first, second] = result as Conditioning[];
    const control = { net: {}, hint: image, strength: 0.5, start: 0, end: 1, vae, previous: undefined };
    assert.deepEqual(first![0]![1].control, control);
    assert.equal(second![0]![1].control, first![0]![1].control);
  });
});

describe("SetUnionControlNetType", () => {
  const typed = async (control_net: unknown, type: string) =>
    (await invokeNode("SetUnionControlNetType", { control_net, type })).result[0];

  it("numbers the types, and leaves auto to the net", async () => {
    const net = FILES.controlnet();
    for (const [type, number] of [
      ["auto", -1],
      ["openpose", 0],
      ["canny/lineart/anime_lineart/mlsd", 3],
      ["repaint", 7],
    ] as const)
      assert.deepEqual(await typed(net, type), { type: number });
  });

  it("refuses a net for one type, and unknown types", async () => {
    await refuses(
      typed({}, "depth"),
      "host.missing",
      /host "preview" has only one kind of picture for this ControlNet/,
    );
    await refuses(typed({}, "canny"), "input.not-in-list", /type/);
  });
});

const PATCH = {
  model_patch: {},
  vae: { encode: () => {}, decode: () => {} },
  strength: 0.8,
  image: Tensor.full([1, 8, 8, 3], 0.5),
  mask: Tensor.full([1, 8, 8], 1),
};
describePatch("QwenImageDiffsynthControlnet", PATCH, { strength: 0 });
describePatch("ZImageFunControlnet", { ...PATCH, inpaint_image: PATCH.image }, { strength: 0 });

describe("CLIPVisionEncode", () => {
  const encode = async (image: Tensor, crop: string) =>
    (await invokeNode("CLIPVisionEncode", { clip_vision: FILES.clip_vision(), image, crop })).result[0];

  it("encodes colours without alpha, cut or not", async () => {
    assert.deepEqual(await encode(Tensor.zeros([2, 8, 8, 4]), "none"), { shape: [2, 8, 8, 3], crop: "none" });
    assert.deepEqual(await encode(Tensor.zeros([1, 8, 9, 3]), "center"), { shape: [1, 8, 9, 3], crop: "center" });
  });

  it("refuses images without colours", async () => {
    await refuses(encode(Tensor.zeros([1, 8, 8, 1]), "none"), "tensor.bad-shape", /at least 3 channels/);
  });
});

describe("StyleModelApply", () => {
  const words = Tensor.from([1, 2, 3, 4, 5, 6], [1, 3, 2]);
  const conditioning: Conditioning = [[Tensor.from([7, 8, 9, 10], [1, 2, 2]), { pooled_output: words }]];
  const picture = {};
  const apply = async (inputs: object, tokens = words) => {
    const style_model = {
      tokens: async (output: unknown) => (output === picture ? tokens : assert.fail("another picture")),
    };
    const own = { conditioning, style_model, clip_vision_output: picture, strength: 1, strength_type: "multiply" };
    return (await invokeNode("StyleModelApply", { ...own, ...inputs })).result[0];
  };

  it("adds the picture's words times its strength to the prompt's", async () => {
    const [[tokens, options]] = (await apply({ strength: 0.5 })) as [Conditioning[number]];
    assertSameBits(tokens, Tensor.from([7, 8, 9, 10, 0.5, 1, 1.5, 2, 2.5, 3], [1, 5, 2]));
    assert.deepEqual(options, { pooled_output: words });
    const [[same]] = (await apply({ strength: 1, strength_type: "attn_bias" })) as [Conditioning[number]];
    assertSameBits(same, Tensor.from([7, 8, 9, 10, 1, 2, 3, 4, 5, 6], [1, 5, 2]));
  });

  it("refuses a bias of attention, and words of another width", async () => {
    await refuses(apply({ strength: 0.5, strength_type: "attn_bias" }), "input.invalid", /strength_type.*"multiply"/);
    await refuses(apply({}, Tensor.zeros([1, 3, 4])), "tensor.bad-shape", /tokens \[1, n, dim\]/);
  });
});

describe("GLIGENTextBoxApply", () => {
  const clip = layeredClip("l", -3);
  const model = { boxes() {} };
  const tokens = Tensor.zeros([1, 77, 4]);
  const defaults = { width: 64, height: 64, x: 0, y: 0 };
  const apply = async (conditioning_to: Conditioning, box: object, others: object = {}) => {
    const inputs = { conditioning_to, clip, gligen_textbox_model: model, text: "a cat" };
    return (await invokeNode("GLIGENTextBoxApply", { ...inputs, ...defaults, ...box, ...others })).result[0];
  };

  it("adds boxes in cells of the latent, one after the other", async () => {
    const first = await apply([[tokens, { strength: 1 }]], { width: 128, height: 64, x: 8, y: 24 });
    const [[, options]] = (await apply(first, { width: 16, height: 23, x: 0, y: 0 })) as [Conditioning[number]];
    const pooled = (await encodePlain(clip, "a cat"))[0]![1].pooled_output;
    assert.equal((pooled as Tensor).data[0], -3);
    const boxes = [
      { pooled, height: 8, width: 16, y: 3, x: 1 },
      { pooled, height: 2, width: 2, y: 0, x: 0 },
    ];
    assert.deepEqual(options, { strength: 1, gligen: { model, boxes } });
    assert.equal((first[0]![1].gligen as { boxes: unknown[] }).boxes.length, 1);
  });

  it("refuses a clip without a pooled output", async () => {
    const [encoder] = clip.encoders;
    const bare = { encoders: [{ ...encoder!, encode: async () => ({ cond: tokens }) }] };
    await refuses(apply([[tokens, {}]], {}, { clip: bare }), "value.invalid", /clip.*pooled output/);
  });
});

describe("ImageUpscaleWithModel", () => {
  const picture = (height: number, width: number, batch = 1, channels = 3): Tensor => {
    const values = new Float32Array(batch * height * width * channels);
    for (let i = 0; i < values.length; i++) values[i] = ((i * 7919) % 1009) / 1008;
    return Tensor.from(values, [batch, height, width, channels]);
  };
  const upscale = async (image: Tensor, others: object = {}, options?: object) => {
    const sizes: string[] = [];
    const model = {
      scale: 2,
      upscale: async (tile: Tensor) => {
        sizes.push(tile.shape.join(" "));
        return enlarged(tile, 2);
      },
      ...others,
    };
    const { result } = await invokeNode("ImageUpscaleWithModel", { upscale_model: model, image }, options);
    return { image: result[0], sizes };
  };

  it("gives a small picture to the model as a whole, each of a batch alone", async () => {
    const small = picture(20, 512, 2, 4);
    const { image, sizes } = await upscale(small);
    assert.deepEqual(sizes, ["1 20 512 3", "1 20 512 3"]);
    const colours = Tensor.from(
      small.data.filter((_, i) => i % 4 !== 3),
      [2, 20, 512, 3],
    );
    assertSameBits(image, enlarged(colours, 2));
  });

  it("shows no seams between tiles of 512 that share 32 pixels", async () => {
    const large = picture(600, 1100);
    const { image, sizes } = await upscale(large);
    assert.equal(sizes.length, 2 * 3);
    assert.deepEqual(new Set(sizes), new Set(["1 512 512 3"]));
    assertClose(image, enlarged(large, 2), () => 2e-7);
  });

  it("fades from tile to tile", async () => {
    let tile = 0;
    const constant = async (part: Tensor) => Tensor.full(enlarged(part, 2).shape, tile++);
    const { image } = await upscale(picture(8, 992), { upscale: constant });
    const row = [...image.data.subarray(0, 1984 * 3)].filter((_, i) => i % 3 === 0);
    assert.deepEqual([row[959], row[1024]], [0, 1]);
    for (let x = 960; x < 1024; x++) assert.ok(Math.abs(row[x]! - (x - 959) / 65) < 1e-6, `${x}: ${row[x]}`);
  });

  it("limits values to 0…1", async () => {
    let value = 0;
    const odd = [Number.NaN, -1, 2, Number.POSITIVE_INFINITY];
    const { image } = await upscale(picture(1, 1, 4), {
      scale: 1,
      upscale: async () => Tensor.full([1, 1, 1, 3], odd[value++]!),
    });
    assert.deepEqual([...image.data], [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]);
  });

  it("refuses models that return other sizes, and pictures beyond all bounds", async () => {
    const wrong = { upscale: async (tile: Tensor) => tile };
    await refuses(upscale(picture(4, 4), wrong), "value.invalid", /upscale_model.*\[1, 8, 8, 3\]/);
    await refuses(upscale(picture(300, 300), { scale: 64 }), "tensor.too-large");
  });

  it("stops between tiles", async () => {
    const controller = new AbortController();
    let tiles = 0;
    const stopping = async (tile: Tensor) => {
      tiles++;
      controller.abort();
      return enlarged(tile, 2);
    };
    const { signal } = controller;
    await rejectsAs(signal, upscale(picture(4, 600), { upscale: stopping }, { signal }));
    assert.equal(tiles, 1);
  });
});
