import assert from "node:assert/strict";
import { invokeNode, type Model, Tensor, validateGraph } from "latentkit";
import { refuses } from "../../../helpers/errors.js";
import { FILES, fileHost, patchable } from "../../../helpers/graph/file-host.js";
import { node } from "../../../helpers/graph/graph-nodes.js";
import { describeLoader } from "../../../helpers/graph/loader-tests.js";

const host = fileHost();
const image = Tensor.full([2, 8, 8, 3], 0.5);
const ipadapter = FILES.ipadapter();
const clip_vision = FILES.clip_vision();

describeLoader("IPAdapterModelLoader", "ipadapter", "IPAdapters");

describe("IPAdapterEncoder and IPAdapterCombineEmbeds", () => {
  const encode = async (weight: number, mask?: Tensor) =>
    (await invokeNode("IPAdapterEncoder", { ipadapter, image, weight, mask, clip_vision }, { host }))
      .result as Tensor[];

  it("weigh embeddings of the positive side, and make as many of the negative one", async () => {
    const [pos, neg] = await encode(2);
    assert.deepEqual(
      [[...pos!.data], [...neg!.data]],
      [
        [1, 2, 1, 2],
        [0, 0, 0, 0],
      ],
    );
    const { result } = await invokeNode(
      "IPAdapterCombineEmbeds",
      { embed1: pos, method: "max", embed2: pos },
      { host },
    );
    assert.deepEqual([...(result[0] as Tensor).shape], [1, 2]);
  });

  it("refuse a mask without pixels", async () => {
    await refuses(
      encode(1, Tensor.zeros([1, 0, 4])),
      "value.invalid",
      /input "mask": expected a mask of at least 1 x 1/,
    );
  });
});

describe("PrepImageForClipVision", () => {
  it("makes a square of a picture", async () => {
    const inputs = {
      image: Tensor.full([1, 30, 50, 4], 1),
      interpolation: "BICUBIC",
      crop_position: "left",
      sharpening: 0.5,
    };
    const { result } = await invokeNode("PrepImageForClipVision", inputs);
    const [{ shape, data }] = result as [Tensor];
    assert.deepEqual([...shape], [1, 224, 224, 3]);
    assert.ok(data.every((value) => value >= 0 && value <= 1));
  });
});

describe("IPAdapterNoise", () => {
  it("refuses noises that are not run", async () => {
    const noise = (inputs: object) => invokeNode("IPAdapterNoise", { type: "fade", strength: 1, blur: 0, ...inputs });
    await refuses(noise({ type: "shuffle" }), "input.not-in-list", /input "type": expected fade, dissolve or gaussian/);
    await refuses(noise({ image_optional: Tensor.zeros([1, 8, 8, 3]) }), "value.invalid", /input "image_optional"/);
  });

  it("refuses a linked picture in validation", () => {
    const errorsOf = (inputs: object) => {
      const graph = {
        "1": node("EmptyImage", { width: 8, height: 8, batch_size: 1, color: 0 }),
        "2": node("IPAdapterNoise", { type: "fade", strength: 1, blur: 0, ...inputs }),
      };
      const { nodeErrors } = validateGraph(graph, { targets: ["2"] });
      return Object.values(nodeErrors).flatMap(({ errors }) => errors.map(({ sentence }) => sentence));
    };
    assert.deepEqual(errorsOf({}), []);
    assert.deepEqual(errorsOf({ image_optional: ["1", 0] }), [
      'Node 2 (IPAdapterNoise), input "image_optional": expected no image (latentkit does not make noise from one), received a link.',
    ]);
    // other inputs are still checked
    assert.match(errorsOf({ blur: 33 }).join(), /input "blur": expected a whole number from 0 to 32, received 33/);
  });
});

describe("IPAdapterUnifiedLoader", () => {
  const NAMES: Readonly<Record<string, readonly string[]>> = {
    ipadapter: [
      "SD1.5/ip-adapter_sd15.safetensors",
      "ip-adapter-plus_sd15.safetensors",
      "ip-adapter_sd15_light_v11.bin",
      "ip-adapter-plus_sdxl_vit-h.safetensors",
    ],
    clip_vision: ["CLIP-ViT-H-14-laion2B-s32B-b79K.safetensors", "clip_vit_l_14.safetensors"],
  };
  const loaded: string[] = [];
  const listing = {
    ...host,
    files: (kind: string) => NAMES[kind],
    loadFile: async (kind: keyof typeof FILES, name: string) => {
      loaded.push(name);
      return FILES[kind]() as never;
    },
  };
  const load = async (model: Model, preset: string) => {
    loaded.length = 0;
    const { result } = await invokeNode("IPAdapterUnifiedLoader", { model, preset }, { host: listing });
    assert.equal(result[0], model);
    return loaded;
  };

  it("finds the files of a preset by the model's family", async () => {
    const [sd1, sdxl] = [await patchable(), await patchable("sdxl")];
    const encoder = "CLIP-ViT-H-14-laion2B-s32B-b79K.safetensors";
    assert.deepEqual(await load(sd1, "STANDARD (medium strength)"), ["SD1.5/ip-adapter_sd15.safetensors", encoder]);
    assert.deepEqual(await load(sd1, "PLUS (high strength)"), ["ip-adapter-plus_sd15.safetensors", encoder]);
    assert.deepEqual(await load(sdxl, "PLUS (high strength)"), ["ip-adapter-plus_sdxl_vit-h.safetensors", encoder]);
    assert.deepEqual(await load(sd1, "LIGHT - SD1.5 only (low strength)"), ["ip-adapter_sd15_light_v11.bin", encoder]);
  });

  it("names the files that it misses, and presets that a family lacks", async () => {
    const sdxl = await patchable("sdxl");
    const face = load(sdxl, "FULL FACE - SD1.5 only (portraits stronger)");
    await refuses(
      face,
      "model.missing",
      /input "preset": "FULL FACE .*" has no IPAdapter of SDXL, which the model is\.$/,
    );
    const sentence = /expected a file "ip\?adapter\?sdxl\.safetensors" below ipadapter, where \? is any character/;
    await refuses(load(sdxl, "VIT-G (medium strength)"), "model.missing", sentence);
  });
});
