import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import Module from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import {
  batch,
  createCache,
  createRegistry,
  createRenderer,
  decodePng,
  defineNode,
  invokeNode,
  LatentkitError,
  registry,
  render,
  Tensor,
  validateGraph,
} from "latentkit";
import { ERROR_CODES, type ErrorCode } from "#src/base/errors.js";
import { ModelFolders } from "#src/host/checkpoint/files/model-folders.js";
import { CallQueue } from "#src/host/checkpoint/runtime/call-queue.js";
import { requireRoom } from "#src/host/checkpoint/runtime/session-loader.js";
import { InputFiles } from "#src/io/files/input-files.js";
import { download } from "#src/io/http/download.js";
import { post } from "#src/io/http/post.js";
import { decodePicture } from "#src/io/pictures/decode.js";
import { openWithSharp } from "#src/io/pictures/sharp.js";
import { readSafetensors, toTensor } from "#src/io/safetensors.js";
import { candidates, loadFirst } from "#src/native/load.js";
import { parseConfig } from "#src/render/config/config.js";
import { openItems } from "#src/render/items/open.js";
import { publishReply } from "#src/service/batch/chunks.js";
import { temporaryFolder } from "../helpers/folders.js";
import { weightFile, writeWeights } from "../helpers/models/weight-file.js";
import { fakeGpu, onFakeGpu } from "../helpers/process/fake-gpu.js";

/** Lets a failure happen in an empty folder; its sentence, if that is not what is thrown. */
type Trigger = (folder: string) => unknown;

const image = (inputs: object = {}) => ({
  class_type: "EmptyImage",
  inputs: { width: 8, height: 8, batch_size: 1, color: 0, ...inputs },
});
const preview = (from: unknown = ["1", 0]) => ({ class_type: "PreviewImage", inputs: { images: from } });
const rendered = (graph: object, options: object = {}) => render(graph, { outputDir: "/none", ...options });
const loaded = (name: string, options: object = {}) =>
  rendered({ 1: { class_type: "LoadImage", inputs: { image: name } }, 2: preview() }, options);
const remote = { positive: "a fox", negative: "", model: "sd3", aspect_ratio: "1:1", seed: 1, denoise: 1 };
const failing = (key: string, more: object) =>
  createRegistry([defineNode({ key, inputs: {}, outputs: {}, outputNode: true, run: () => ({}), ...more })], registry);

/** A header of a PNG file with sides of any size. */
function pngOf(width: number, height: number): Buffer {
  const header = Buffer.alloc(33);
  header.set(Buffer.from("89504e470d0a1a0a0000000d49484452", "hex"));
  header.writeUInt32BE(width, 16);
  header.writeUInt32BE(height, 20);
  header.set([8, 2], 24);
  return header;
}

const posted = (more: object) =>
  post({
    url: "https://example.com",
    headers: {},
    body: new Uint8Array(),
    clock: () => new Date(),
    signal: new AbortController().signal,
    fetch,
    ...more,
  });

/** For each code a failure and its whole sentence, or the reason for which a test cannot make it happen. */
const SENTENCES: Record<ErrorCode, readonly [trigger: Trigger, sentence: string] | string> = {
  "input.missing": [() => invokeNode("InvertMask", {}), 'InvertMask, input "mask": expected MASK, received nothing.'],
  "input.wrong-type": [
    () => rendered({ 1: image({ width: "wide" }), 2: preview() }),
    'Node 1 (EmptyImage), input "width": expected a whole number from 1 to 16384, received "wide".',
  ],
  "input.not-finite": [
    () => invokeNode("EmptyImage", { width: Number.NaN }),
    'EmptyImage, input "width": expected a whole number from 1 to 16384, received NaN.',
  ],
  "input.below-minimum": [
    () => rendered({ 1: image({ width: 0 }), 2: preview() }),
    'Node 1 (EmptyImage), input "width": expected a whole number from 1 to 16384, received 0.',
  ],
  "input.above-maximum": [
    () => rendered({ 1: image({ height: 20_000 }), 2: preview() }),
    'Node 1 (EmptyImage), input "height": expected a whole number from 1 to 16384, received 20000.',
  ],
  "input.not-in-list": [
    () =>
      rendered({
        1: image(),
        2: { class_type: "ImageToMask", inputs: { image: ["1", 0], channel: "gren" } },
        3: { class_type: "MaskPreview", inputs: { mask: ["2", 0] } },
      }),
    'Node 2 (ImageToMask), input "channel": expected red, green, blue or alpha, received "gren". Did you mean green?',
  ],
  "input.invalid": [
    () =>
      rendered({ 1: image(), 2: { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "../fox" } } }),
    'Node 2 (SaveImage), input "filename_prefix": expected a path inside the output folder, received "../fox".',
  ],
  "network.forbidden": [
    () => loaded("https://example.com/fox.png", { allowNetwork: false }),
    "Node 1 (LoadImage): the node reaches the network or uses a key, which is not allowed here (allowNetwork, allow_network, --offline).",
  ],
  "link.bad": [
    () => rendered({ 1: image(), 2: preview(["1", 4]) }),
    'Node 2 (PreviewImage), input "images": expected output 0 of node 1, its only one, received output 4.',
  ],
  "link.type-mismatch": [
    () => rendered({ 1: { class_type: "PrimitiveInt", inputs: { value: 1 } }, 2: preview() }),
    'Node 2 (PreviewImage), input "images": expected IMAGE, received INT.',
  ],
  "validation.exception": [
    () => {
      const validate = () => {
        throw new Error("the disk is on fire");
      };
      return rendered({ 1: { class_type: "odd", inputs: {} } }, { registry: failing("odd", { validate }) });
    },
    "Node 1 (odd): its validation failed: the disk is on fire.",
  ],
  "graph.invalid": [() => rendered({ 1: { inputs: {} } }), "Node 1: expected a class_type, received none."],
  "graph.invalid-json": [
    () => render('{"1": {"class_type": EmptyImage}}'),
    'JSON, line 1, column 22: expected a value, received "E".',
  ],
  "graph.unknown-class": [
    () => rendered({ 1: { class_type: "EmptyImge", inputs: {} } }),
    'Node 1: expected a known class_type, received "EmptyImge". Did you mean EmptyImage?',
  ],
  "graph.unknown-target": [
    () => rendered({ 1: image(), 2: preview() }, { targets: ["3"] }),
    'Target: expected the id of a node of the graph, received "3".',
  ],
  "graph.empty": [() => render(null as never), "Graph: expected an object of nodes by id, received null."],
  "graph.no-outputs": [
    () => rendered({ 1: image() }),
    "Graph: expected an output node (such as SaveImage) or a target, received neither.",
  ],
  "graph.outputs-failed": [
    () => {
      const validation = validateGraph({ 1: image({ width: 0 }), 2: preview() });
      assert.ok(!validation.ok);
      assert.equal(validation.error.code, "graph.outputs-failed");
      return validation.error.sentence;
    },
    "No output of the graph can be computed.",
  ],
  "graph.cycle": [
    () =>
      rendered({
        1: { class_type: "ImageInvert", inputs: { image: ["2", 0] } },
        2: { class_type: "ImageInvert", inputs: { image: ["1", 0] } },
        3: preview(),
      }),
    "The graph has a cycle: 1 → 2 → 1.",
  ],
  "value.invalid": [
    () => createCache({ policy: "newest" } as never),
    'Cache policy: expected one of bytes, classic, lru, none, received "newest".',
  ],
  "value.out-of-range": [
    () => invokeNode("Canny", { image: Tensor.full([1, 8, 8, 3], 0), low_threshold: 0.9, high_threshold: 0.1 }),
    'Canny, input "low_threshold": expected at most high_threshold, 0.1, received 0.9.',
  ],
  "tensor.bad-shape": [
    () => invokeNode("ImageToMask", { image: Tensor.full([1, 8, 8, 1], 0), channel: "alpha" }),
    'ImageToMask, input "image": expected an image with a channel "alpha", received a tensor of shape [1, 8, 8, 1].',
  ],
  "tensor.too-large": [
    () => toTensor({ dtype: "F32", shape: [2 ** 20, 2 ** 20], bytes: new Uint8Array() }),
    "Shape [1048576, 1048576]: expected at most 1073741824 elements, received 1099511627776.",
  ],
  "png.invalid": [() => decodePng(Buffer.from("GIF89a")), "PNG: it does not start with the signature of a PNG."],
  "png.too-large": [
    () => decodePng(pngOf(100_000, 100_000)),
    "PNG: expected at most 134217728 pixels, received 100000 x 100000.",
  ],
  "picture.invalid": [
    () => decodePicture(Buffer.from("8BPS")),
    "Picture: expected the bytes of a PNG, JPEG, WebP, AVIF, GIF, TIFF or BMP file, received another file.",
  ],
  "picture.too-large": [
    () => decodePicture(Buffer.from("524946461600000057454250565038200a0000003000009d012aff3fff3f", "hex")),
    "Picture: expected at most 134217728 pixels in all frames, received more.",
  ],
  "picture.needs-sharp": [
    async () => {
      const loader = Module as unknown as { _load(name: string, ...rest: unknown[]): unknown };
      const load = loader._load;
      loader._load = (name, ...rest) => {
        if (name === "sharp") throw new Error("Cannot find module");
        return load.call(loader, name, ...rest);
      };
      try {
        await openWithSharp(new Uint8Array(), { kind: "webp", maxPixels: 1 }, async () => 0);
      } finally {
        loader._load = load;
      }
    },
    'Reading a WebP file needs the optional package sharp, which could not be loaded: run "npm install sharp".',
  ],
  "safetensors.invalid": [
    () => readSafetensors(new Uint8Array(4)),
    "Safetensors: expected at least 8 bytes, received 4.",
  ],
  "model.invalid": [
    (folder) => {
      const factor = { dtype: "F32", shape: [1], bytes: new Uint8Array(4) };
      const weights = { "fox.weight": factor, "fox.scale_weight": factor, "fox.weight_scale": factor };
      return weightFile(writeWeights(join(folder, "fox.safetensors"), weights));
    },
    'Model "fox.safetensors": expected one factor of "fox.weight", received "fox.scale_weight" and "fox.weight_scale".',
  ],
  "model.missing": [
    (folder) => {
      mkdirSync(join(folder, "loras"));
      writeFileSync(join(folder, "loras/fox.safetensors"), "");
      return new ModelFolders(folder).resolve("loras", "foxy.safetensors");
    },
    'Models: expected the name of a file among the LoRAs, received "foxy.safetensors". Nearest: "fox.safetensors".',
  ],
  "model.unsupported": [
    (folder) => {
      const path = join(folder, "sd.ckpt");
      writeFileSync(path, "PK\x03\x04 archive/data.pkl");
      return weightFile(path);
    },
    'Model "sd.ckpt": expected a .safetensors or GGUF file, received a PyTorch pickle (.ckpt, .pt or .bin), which could run any code: convert it to .safetensors.',
  ],
  "path.outside": [
    (folder) => new InputFiles({ folder }).read("../fox.png"),
    'Input file: expected the name of a file inside the input folder, received "../fox.png".',
  ],
  "file.not-found": [() => render("/none/graph.json"), "Graph /none/graph.json does not exist."],
  "file.read-failed": [
    (folder) => {
      writeFileSync(join(folder, "graph"), "");
      return render(join(folder, "graph/fox.json"));
    },
    "Graph FOLDER/graph/fox.json cannot be read (ENOTDIR).",
  ],
  "file.write-failed": [
    (folder) => {
      writeFileSync(join(folder, "out"), "a file");
      const save = { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "fox" } };
      return rendered({ 1: image(), 2: save }, { outputDir: join(folder, "out") });
    },
    'Node 2 (SaveImage): Cannot write "out": a part of the path is not a folder (ENOTDIR).',
  ],
  "node.failed": [
    () => {
      const run = () => {
        throw new Error("the disk is on fire");
      };
      return rendered({ 1: { class_type: "odd", inputs: {} } }, { registry: failing("odd", { run }) });
    },
    "Node 1 (odd): the disk is on fire",
  ],
  "remote.no-key": [
    () =>
      invokeNode("ext remoteImageApi", remote, {
        config: { remote_image_api: { keys: [{ name: "mine", key: " " }] } },
      } as never),
    "ext remoteImageApi: expected a key in remote_image_api.keys of the configuration or in STABILITY_API_KEY, received none.",
  ],
  "remote.failed": [
    () => {
      const cause = Object.assign(new Error("with the key"), { code: "ECONNREFUSED" });
      return posted({ fetch: () => Promise.reject(new TypeError("fetch failed", { cause })) });
    },
    "Remote image service: the connection failed (ECONNREFUSED).",
  ],
  "remote.timeout": [
    () => posted({ fetch: () => new Promise(() => {}), timeoutMs: 20 }),
    "Remote image service: no response within 0.02 s.",
  ],
  "download.refused": [
    (folder) => new InputFiles({ folder }).read("https://127.0.0.1/fox.png"),
    'Download: expected a public address, received "https://127.0.0.1/fox.png".',
  ],
  "download.failed": [
    () => download("https://localhost:1/fox.png?key=hidden", { isAllowed: () => true }),
    'Download: could not download "https://localhost:1/fox.png": ECONNREFUSED.',
  ],
  "native.unavailable": [
    (folder) => loadFirst(candidates(folder, join(folder, "none.node"))),
    'The native core could not be loaded on PLATFORM, Node VERSION (none of these files exists: FOLDER/none.node; package @latentkit/PLATFORM is not installed). In a checkout run "node scripts/native-build.mjs"; in a project run "npm install --save-dev cmake-js node-addon-api", then "node node_modules/latentkit/scripts/native-build.mjs", which needs a C++20 compiler and CMake 3.20.',
  ],
  "native.failed": [
    async () => {
      const program = `
        const x = ops.scale(Tensor.full([5], 2), 2);
        send(refused(() => x.data)[1]);`;
      return (await onFakeGpu(program, fakeGpu("fail=cuMemcpyDtoHAsync_v2:2:1")))[0];
    },
    "The values of a tensor on cuda:0 could not be fetched (download: out of memory).",
  ],
  "device.unavailable": [
    async () => (await onFakeGpu("send(refused(() => withDevice('cuda:7', () => randn([4], { seed: 1n })))[1]);"))[0],
    "Device cuda:7 cannot be used: There is no cuda:7: the driver reports one device, cuda:0.",
  ],
  "runtime.missing": "onnxruntime-node is there, and its process takes no preload that could hide it",
  "runtime.failed": [
    () => {
      const queue = new CallQueue({ onStuck() {}, onWanted() {}, mostWaiting: 2 });
      const call = () => queue.add(undefined, () => new Promise(() => {}));
      for (let i = 0; i < 3; i++) void call();
      return call();
    },
    "ONNX Runtime is busy: 2 calls are already waiting.",
  ],
  "memory.missing": [
    () => requireRoom("UNet of sd15.safetensors", { weights: 10e9, work: 2.7e9 }, -3.6e9, "linux"),
    "UNet of sd15.safetensors needs 12.7 GB of memory, but only 9.1 GB is free: use a file with fewer bits per weight, such as GGUF's Q4_K.",
  ],
  "device.lost": [
    async () => {
      const program = `
        const x = Tensor.full([100], 1);
        send(refused(() => ops.scale(x, 2).data)[1]);`;
      return (await onFakeGpu(program, fakeGpu("fail=lk_scale:719:1")))[0];
    },
    "cuda:0 failed and its tensors are lost: restart the process, or use --device cpu.",
  ],
  "host.missing": [
    () =>
      invokeNode("UNETLoader", { unet_name: "flux.safetensors", weight_dtype: "default" }, {
        host: { name: "mine", checkpoints: () => [], loadCheckpoint: () => undefined },
      } as never),
    'UNETLoader: host "mine" has no separate diffusion models.',
  ],
  "setup.failed": [
    async (folder) => {
      const setup = pathToFileURL(join(folder, "setup.mjs"));
      writeFileSync(setup, 'throw new Error("the disk is on fire");');
      const renderer = createRenderer({ setup, threads: 1 });
      try {
        await renderer.render({ graph: { 1: image(), 2: preview() } });
      } finally {
        await renderer.close();
      }
    },
    "Setup module file://FOLDER/setup.mjs: the disk is on fire.",
  ],
  "thread.lost": [
    async (folder) => {
      const setup = pathToFileURL(join(folder, "setup.mjs"));
      writeFileSync(
        setup,
        `import { createRegistry, defineNode } from ${JSON.stringify(import.meta.resolve("latentkit"))};
        const leave = defineNode({ key: "leave", inputs: {}, outputs: {}, outputNode: true, run: () => process.exit(7) });
        export default () => ({ registry: createRegistry([leave]) });`,
      );
      const renderer = createRenderer({ setup, threads: 1 });
      try {
        await renderer.render({ graph: { 1: { class_type: "leave", inputs: {} } } });
      } finally {
        await renderer.close();
      }
    },
    "Node 1: the rendering thread ended (process.exit(7) was called).",
  ],
  "journal.refused": [
    async (folder) => {
      const journal = join(folder, "journal.jsonl");
      writeFileSync(journal, "a shopping list\n");
      for await (const _ of batch({ 1: image(), 2: preview() }, [{}], { journal, resume: true, outputDir: folder }));
    },
    "Journal FOLDER/journal.jsonl, line 1: this line is damaged.",
  ],
  "store.unavailable": [
    (folder) => publishReply([{}] as never, { response: "{}" } as never, folder, {} as never),
    "A worker sent an invalid response.",
  ],
  "items.invalid": [
    (folder) => {
      writeFileSync(join(folder, "items.jsonl"), "");
      return openItems(join(folder, "items.jsonl"), {} as never);
    },
    "FOLDER/items.jsonl: expected at least one item, received none.",
  ],
  "usage.invalid": [
    () => rendered({ 1: image(), 2: preview() }, { sett: {} }),
    'render: unknown option "sett". Did you mean set?',
  ],
  "config.invalid": [
    () => parseConfig({ limits: { runing: 3 } }, "latentkit.yaml"),
    'latentkit.yaml: unknown key "limits.runing". Did you mean "running"?',
  ],
  "run.interrupted": [
    async () => {
      const renderer = createRenderer();
      await renderer.close();
      return renderer.render({ graph: {} });
    },
    "The renderer was closed; createRenderer makes a new one.",
  ],
};

describe("sentences of errors", () => {
  const folder = temporaryFolder();

  /** The message that a trigger throws or returns. */
  async function sentenceOf(code: ErrorCode, trigger: Trigger): Promise<string> {
    try {
      const result = (await trigger(folder())) as { error?: unknown } | string | undefined;
      if (typeof result === "string") return result;
      throw result?.error ?? new Error("nothing was thrown");
    } catch (error) {
      assert.ok(error instanceof LatentkitError, String((error as Error).stack));
      assert.equal(error.code, code, error.message);
      return error.message;
    }
  }

  /** A sentence without what differs from machine to machine. */
  const placeless = (sentence: string) =>
    sentence
      .replaceAll(folder(), "FOLDER")
      .replace(/\b(?:linux|linuxmusl|win32|darwin)-(?:x64|arm64)\b/g, "PLATFORM")
      .replace(/Node \d+\.\d+\.\d+/, "Node VERSION");

  for (const code of Object.keys(ERROR_CODES) as ErrorCode[]) {
    const line = SENTENCES[code];
    if (typeof line === "string") continue;
    it(`${code}: a whole sentence`, async () => {
      const sentence = await sentenceOf(code, line[0]);
      assert.equal(placeless(sentence), line[1]);
    });
  }
});
