import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Host, render, validateGraph } from "latentkit";
import { createCheckpointHost } from "latentkit/models";
import { OWN_FAMILIES } from "#src/host/checkpoint/recognition/refusal.js";
import { refuses } from "../../../helpers/errors.js";
import { temporaryFolder } from "../../../helpers/folders.js";
import { goldenBytes } from "../../../helpers/golden-file.js";
import { textValue, writeGguf } from "../../../helpers/models/gguf-file.js";
import { goldenModelFolder } from "../../../helpers/models/golden.js";
import { FLUX_FOLDER } from "../../../helpers/models/golden-flux.js";
import { f32, type RawTensor, writeWeights } from "../../../helpers/models/weight-file.js";

const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");

describe("model files that a checkpoint host cannot load", () => {
  const folder = temporaryFolder();
  let host: Host;
  const file = (name: string) => {
    const path = join(folder(), name);
    mkdirSync(dirname(path), { recursive: true });
    return path;
  };
  beforeEach(() => {
    const single = { type: 0, shape: [1], bytes: new Uint8Array(4) };
    writeGguf(file("unet/wan2-Q4_K_S.gguf"), {
      pairs: { "general.architecture": textValue("wan") },
      tensors: { "blocks.0.modulation": single },
    });
    writeWeights(file("unet/flux1-dev.safetensors"), { "double_blocks.0.img_attn.qkv.weight": f32([1]) });
    writeWeights(file("unet/flux1-dev-00002-of-00003.safetensors"), { "single_blocks.0.linear1.weight": f32([1]) });
    const nunchaku = { "single_transformer_blocks.0.norm.linear.qweight": f32([1]), "a.wscales": f32([1]) };
    writeWeights(file("unet/svdq-int4-flux.1-dev.safetensors"), nunchaku);
    writeWeights(file("vae/flux1-dev.safetensors"), { "double_blocks.0.img_attn.qkv.weight": f32([1]) });
    writeGguf(file("clip/mmproj-F16.gguf"), {
      pairs: { "general.architecture": textValue("clip") },
      tensors: { "v.blk.0.attn_q.weight": single },
    });
    writeWeights(file("unet/good.safetensors"), {
      "input_blocks.0.0.weight": f32([8, 4, 3, 3]),
      "out.2.weight": f32([4, 8, 3, 3]),
    });
    writeFileSync(file("checkpoints/v1-5-pruned.ckpt"), "PK\x03\x04 archive/data.pkl and more");
    writeFileSync(file("vae/odd.pt"), "\x80\x02", "latin1");
    writeWeights(file("clip/t5xxl.safetensors"), {
      "encoder.block.0.layer.0.SelfAttention.q.weight": f32([1]),
    });
    writeFileSync(file("clip/t5_sd3.safetensors"), goldenBytes(join(FLUX_FOLDER, "text_encoders/t5_sd3.safetensors"))!);
    host = createCheckpointHost({ models: folder() });
  });
  const unet = (unet_name: string) => ({
    "3": { class_type: "UNETLoader", inputs: { unet_name, weight_dtype: "default" } },
  });
  const pickle =
    "expected a .safetensors or GGUF file, received a PyTorch pickle (.ckpt, .pt or .bin), which could run any code: convert it to .safetensors.";
  const cases: readonly (readonly [object, string])[] = [
    [unet("wan2-Q4_K_S.gguf"), "The graph cannot run here: Wan (node 3, wan2-Q4_K_S.gguf: GGUF)."],
    [
      unet("flux1-dev.safetensors"),
      `Node 3 (UNETLoader), input "unet_name": Model "flux1-dev.safetensors": expected a checkpoint of ${OWN_FAMILIES}, received an incomplete Flux model.`,
    ],
    [
      unet("flux1-dev-00002-of-00003.safetensors"),
      'Node 3 (UNETLoader), input "unet_name": Model "flux1-dev-00002-of-00003.safetensors": expected a whole model, received part 2 of 3: join the parts to one file.',
    ],
    [
      unet("svdq-int4-flux.1-dev.safetensors"),
      `Node 3 (UNETLoader), input "unet_name": Model "svdq-int4-flux.1-dev.safetensors": expected a checkpoint of ${OWN_FAMILIES}, received weights in 4 bits of Nunchaku (SVDQuant).`,
    ],
    [
      { "3": { class_type: "VAELoader", inputs: { vae_name: "flux1-dev.safetensors" } } },
      `Node 3 (VAELoader), input "vae_name": Model "flux1-dev.safetensors": expected a VAE of ${OWN_FAMILIES}, received a Flux model.`,
    ],
    [
      { "3": { class_type: "CLIPLoader", inputs: { clip_name: "mmproj-F16.gguf", type: "qwen_image" } } },
      `Node 3 (CLIPLoader), input "clip_name": Model "mmproj-F16.gguf": expected a text encoder of ${OWN_FAMILIES}, received a vision tower of llama.cpp (mmproj).`,
    ],
    [
      { "3": { class_type: "CheckpointLoaderSimple", inputs: { ckpt_name: "v1-5-pruned.ckpt" } } },
      `Node 3 (CheckpointLoaderSimple), input "ckpt_name": Model "v1-5-pruned.ckpt": ${pickle}`,
    ],
    [
      { "3": { class_type: "VAELoader", inputs: { vae_name: "odd.pt" } } },
      `Node 3 (VAELoader), input "vae_name": Model "odd.pt": ${pickle}`,
    ],
    [
      { "3": { class_type: "CLIPLoader", inputs: { clip_name: "t5xxl.safetensors", type: "stable_diffusion" } } },
      'Node 3 (CLIPLoader), input "clip_name": Model "t5xxl.safetensors": expected a text encoder of SD 1, SD 2, SDXL, SD 3, Z-Image, Qwen-Image, Flux.1, Flux.2 or Chroma, received a text encoder (T5).',
    ],
    [
      { "3": { class_type: "CLIPLoader", inputs: { clip_name: "t5_sd3.safetensors", type: "stable_diffusion" } } },
      'Node 3 (CLIPLoader), input "clip_name": Model "t5_sd3.safetensors": expected one of the types flux, chroma, sd3 for a text encoder T5, received type "stable_diffusion".',
    ],
  ];

  it("are refused by validation and before a run, in the same sentence", async () => {
    for (const [graph, what] of cases) {
      const { nodeErrors, ok } = validateGraph(graph, { host, targets: ["3"] });
      assert.equal(ok, false, what);
      assert.deepEqual(
        nodeErrors["3"]?.errors.map(({ sentence, code }) => [sentence, code]),
        [[what, "model.unsupported"]],
      );
      const run = render(graph, { host, targets: ["3"], output: "memory" });
      await refuses(run, "model.unsupported", new RegExp(escaped(what)));
    }
  });

  it("are none of the choices", () => {
    assert.deepEqual(host.files?.("diffusion_models"), ["good.safetensors"]);
    assert.deepEqual(host.files?.("vae"), []);
    // it is its type alone that does not fit
    assert.deepEqual(host.files?.("text_encoders"), ["t5_sd3.safetensors"]);
    assert.deepEqual(host.checkpoints(), []);
    const [error] = validateGraph(unet("other.safetensors"), { host, targets: ["3"] }).nodeErrors["3"]!.errors;
    assert.match(error!.sentence, /expected good\.safetensors, received "other\.safetensors"/);
  });
});

describe("damaged files and files of other kinds in a models folder", () => {
  const folder = temporaryFolder();
  const LOADERS = {
    checkpoints: ["CheckpointLoaderSimple", "ckpt_name", {}],
    diffusion_models: ["UNETLoader", "unet_name", { weight_dtype: "default" }],
    vae: ["VAELoader", "vae_name", {}],
    loras: ["LoraLoaderModelOnly", "lora_name", { model: ["1", 0], strength_model: 1 }],
    text_encoders: ["CLIPLoader", "clip_name", { type: "stable_diffusion" }],
    controlnet: ["ControlNetLoader", "control_net_name", {}],
    upscale_models: ["UpscaleModelLoader", "model_name", {}],
  } as const;
  type Kind = keyof typeof LOADERS;
  const KINDS = Object.keys(LOADERS) as Kind[];
  const hostOf = (): Host => createCheckpointHost({ models: folder() });
  const pathOf = (kind: Kind, name: string): string => {
    mkdirSync(join(folder(), kind), { recursive: true });
    return join(folder(), kind, name);
  };
  const graphOf = (kind: Kind, name: string): object => {
    const [class_type, input, more] = LOADERS[kind];
    const first = { class_type: "CheckpointLoaderSimple", inputs: { ckpt_name: "sdxl.safetensors" } };
    return { "1": first, "2": { class_type, inputs: { [input]: name, ...more } } };
  };
  const sentencesOf = (host: Host, kind: Kind, name: string): string[] => {
    const { nodeErrors } = validateGraph(graphOf(kind, name), { host, targets: ["2"] });
    return Object.values(nodeErrors).flatMap(({ errors }) => errors.map(({ sentence }) => sentence));
  };
  const tensorsOf = (path: string): Record<string, RawTensor> => {
    const bytes = readFileSync(path);
    const from = 8 + Number(bytes.readBigUInt64LE(0));
    const header = JSON.parse(bytes.toString("utf8", 8, from)) as Record<
      string,
      { dtype: string; shape: number[]; data_offsets: [number, number] }
    >;
    const tensors = Object.entries(header).filter(([key]) => key !== "__metadata__");
    return Object.fromEntries(
      tensors.map(([key, { dtype, shape, data_offsets: at }]) => [
        key,
        { dtype, shape, bytes: bytes.subarray(from + at[0], from + at[1]) },
      ]),
    );
  };
  beforeEach(() => {
    goldenModelFolder(folder());
  });

  const BAD: Readonly<Record<string, readonly [Uint8Array, RegExp]>> = {
    page: [Buffer.from("<!DOCTYPE html><title>Sign in</title>"), /received a web page: /],
    pointer: [
      Buffer.from("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
      /received a Git LFS pointer: /,
    ],
    json: [Buffer.from('{"error":"not found"}'), /received JSON, /],
    xml: [Buffer.from("<?xml version='1.0'?><Error/>"), /received XML, /],
    text: [Buffer.from("Not Found, sorry"), /received text: /],
    empty: [Buffer.alloc(0), /received an empty file: /],
    zeros: [Buffer.alloc(4096), /received a file of zeros/],
    gzip: [Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]), /received a gzip archive: /],
    zip: [Buffer.from("PK\x03\x04 model.safetensors"), /received a ZIP archive: unpack it/],
    pickled: [Buffer.from("PK\x03\x04 archive/data.pkl"), /received a PyTorch pickle .*: convert it/],
  };

  it("are refused with the sentence of a run, and never a choice, in each loader", async () => {
    const whole = readFileSync(join(folder(), "loras/sd1_diffusers.safetensors"));
    const files = Object.entries({
      ...BAD,
      short: [whole.subarray(0, 300), /received only the first 300 bytes of one: /] as const,
      cut: [whole.subarray(0, -5), /the file is cut off: .*; download or copy it again/] as const,
    });
    for (const kind of KINDS)
      for (const [name, [bytes]] of files) writeFileSync(pathOf(kind, `bad-${name}.safetensors`), bytes);
    const host = hostOf();
    for (const kind of KINDS) {
      const offered = kind === "checkpoints" ? host.checkpoints() : host.files?.(kind);
      assert.deepEqual(
        offered?.filter((name) => name.startsWith("bad-")),
        [],
        kind,
      );
      const [class_type, input] = LOADERS[kind];
      for (const [name, [, reason]] of files) {
        const file = `bad-${name}.safetensors`;
        const [sentence, ...more] = sentencesOf(host, kind, file);
        assert.match(sentence!, reason);
        assert.deepEqual(more, []);
        const start = `Node 2 (${class_type}), input "${input}": `;
        assert.ok(
          sentence!.startsWith(`${start}Model "${file}": ${name === "cut" ? "the file is cut off" : "expected"}`),
          sentence,
        );
        const load = kind === "checkpoints" ? host.loadCheckpoint(file) : host.loadFile!(kind, file);
        await assert.rejects(load, { message: sentence!.slice(start.length) });
      }
    }
  });

  it("are known by a cut end in lists, whatever their header is like", () => {
    const whole = readFileSync(join(folder(), "checkpoints/sdxl.safetensors"));
    writeFileSync(pathOf("checkpoints", "cut-sdxl.safetensors"), whole.subarray(0, -1));
    const names = hostOf().checkpoints();
    assert.ok(names.includes("sdxl.safetensors") && !names.includes("cut-sdxl.safetensors"));
  });

  it("are told what another loader would read, not that it cannot run here", () => {
    const [lora, checkpoint] = ["loras/sd1_diffusers.safetensors", "checkpoints/sdxl.safetensors"];
    writeFileSync(pathOf("checkpoints", "lora.safetensors"), readFileSync(join(folder(), lora)));
    writeFileSync(pathOf("vae", "lora.safetensors"), readFileSync(join(folder(), lora)));
    writeFileSync(pathOf("upscale_models", "sdxl.safetensors"), readFileSync(join(folder(), checkpoint)));
    writeFileSync(pathOf("loras", "sdxl.safetensors"), readFileSync(join(folder(), checkpoint)));
    writeWeights(pathOf("checkpoints", "odd.safetensors"), { "foo.weight": f32([1]) });
    const host = hostOf();
    const start = 'Node 2 (CheckpointLoaderSimple), input "ckpt_name": Model ';
    const expected =
      "expected a checkpoint of SD 1, SD 2, SDXL, SD 3, Z-Image, Qwen-Image, Flux.1, Flux.2 or Chroma, received";
    assert.deepEqual(sentencesOf(host, "checkpoints", "lora.safetensors"), [
      `${start}"lora.safetensors": ${expected} a LoRA.`,
    ]);
    assert.deepEqual(sentencesOf(host, "checkpoints", "odd.safetensors"), [
      `${start}"odd.safetensors": ${expected} unknown keys such as "foo.weight".`,
    ]);
    assert.match(sentencesOf(host, "vae", "lora.safetensors").join(), /expected a VAE of .*, received a LoRA\.$/);
    assert.match(
      sentencesOf(host, "upscale_models", "sdxl.safetensors").join(),
      /received a Stable Diffusion checkpoint/,
    );
    assert.match(sentencesOf(host, "loras", "sdxl.safetensors").join(), /expected a LoRA, received a Stable Diffusion/);
  });

  it("are quantised checkpoints of formats that a run refuses", async () => {
    const tensors = tensorsOf(join(folder(), "checkpoints/sdxl.safetensors"));
    const layer = Object.keys(tensors)
      .find((key) => key.endsWith("attn1.to_q.weight"))!
      .slice(0, -".weight".length);
    const quant = (format: string): RawTensor => {
      const bytes = Buffer.from(JSON.stringify({ format }));
      return { dtype: "U8", shape: [bytes.length], bytes };
    };
    const layers = JSON.stringify({ layers: { [layer]: { format: "int4" } } });
    const { [`${layer}.weight`]: left, ...without } = tensors;
    const cases: readonly (readonly [string, Record<string, RawTensor>, RegExp, Record<string, string>?])[] = [
      [
        "nvfp4",
        { ...tensors, [`${layer}.comfy_quant`]: quant("nvfp4") },
        /of U8 with rows of a multiple of 16, received/,
      ],
      ["int8", { ...tensors, [`${layer}.comfy_quant`]: quant("int8") }, /received "int8", by/],
      ["metadata", tensors, /received "int4", by/, { _quantization_metadata: layers }],
      ["zero", { ...tensors, [`${layer}.weight_zero_point`]: f32([1]) }, /weight_zero_point", which changes a weight/],
      ["lacking", without, /expected weight ".*attn1\.to_q\.weight" of shape \[.*\], received none/],
    ];
    assert.ok(left !== undefined);
    for (const [name, weights, , metadata] of cases)
      writeWeights(pathOf("checkpoints", `quant-${name}.safetensors`), weights, metadata);
    const host = hostOf();
    for (const [name, , reason] of cases) {
      const file = `quant-${name}.safetensors`;
      const [sentence] = sentencesOf(host, "checkpoints", file);
      assert.match(sentence ?? "", reason, name);
      await assert.rejects(host.loadCheckpoint(file), ({ message }: Error) => sentence!.endsWith(message));
    }
  });

  it("are none of the golden models", () => {
    const host = hostOf();
    for (const name of ["sdxl", "sd1_fp8", "sd1_inpaint"])
      assert.deepEqual(sentencesOf(host, "checkpoints", `${name}.safetensors`), []);
    for (const name of ["sd1_diffusers", "sd1_lycoris"])
      assert.deepEqual(sentencesOf(host, "loras", `${name}.safetensors`), []);
  });
});
