// Attacks by what a service is there for: nodes that compute for long, pictures that are large, model files of strangers.
import { execFileSync } from "node:child_process";
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { crc32, deflateSync } from "node:zlib";
import { get, inLanes, post } from "./http.mjs";
import { AUTH } from "./service.mjs";

const TINY_MODELS = fileURLToPath(new URL("../make-tiny-models.mjs", import.meta.url));
const SIDE = 4096;
const MIB = 2 ** 20;

export function workAttacks() {
  // making them takes longer than most attacks
  let made;
  const models = () => {
    made ??= tinyModels();
    return made;
  };
  const computing = Object.entries(LONG_NODES).map(([name, graph]) => [
    `node-${name}`,
    { models, computes: true, attack: (service) => compute(service, graph, name === "prompt" ? "error" : "success") },
  ]);
  return {
    ...Object.fromEntries(computing),
    // one such picture at a time, as it is and as it is decoded
    views: { rendersGraph: true, mostGrowth: 512 * MIB, prepare: uploadLarge, attack: viewLarge },
    "model-files": { models: hostileModels, attack: listModels },
  };
}

function tinyModels() {
  const folder = mkdtempSync(join(tmpdir(), "latentkit-tiny-models-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  execFileSync(process.execPath, [TINY_MODELS, join(folder, "models")]);
  return join(folder, "models");
}

const node = (class_type, inputs) => ({ class_type, inputs });
const shown = (images) => node("PreviewImage", { images });
const sides = (batch_size) => ({ width: SIDE, height: SIDE, batch_size });
const picture = (batch) => node("EmptyImage", { ...sides(batch), color: 255 });
const checkpoint = (name) => node("CheckpointLoaderSimple", { ckpt_name: `${name}.safetensors` });

/** Graphs, each of which takes seconds of one node. */
const LONG_NODES = {
  blur: { 1: picture(4), 2: node("ImageBlur", { image: ["1", 0], blur_radius: 31, sigma: 10 }), 3: shown(["2", 0]) },
  lanczos: {
    1: picture(8),
    2: node("ImageScale", { image: ["1", 0], upscale_method: "lanczos", width: 1024, height: 1024, crop: "disabled" }),
    3: shown(["2", 0]),
  },
  grow: {
    1: node("SolidMask", { value: 0.5, width: SIDE, height: SIDE }),
    2: node("GrowMask", { mask: ["1", 0], expand: 2000, tapered_corners: true }),
    3: node("MaskToImage", { mask: ["2", 0] }),
    4: shown(["3", 0]),
  },
  prompt: {
    1: checkpoint("tiny-sd1"),
    2: node("CLIPTextEncode", { clip: ["1", 1], text: "\u{1f98a}".repeat(1_000_000) }),
    3: node("PreviewAny", { source: ["2", 0] }),
  },
  // as many values as a request may have, in nodes that no output needs
  nodes: {
    ...Object.fromEntries(
      Array.from({ length: 20_000 }, (_, i) => [i + 3, node("EmptyLatentImage", { ...sides(1), width: 64 })]),
    ),
    1: node("EmptyImage", { width: 64, height: 64, batch_size: 1, color: 255 }),
    2: shown(["1", 0]),
  },
  decode: {
    1: checkpoint("tiny-sd1"),
    2: node("EmptyLatentImage", { width: 2048, height: 2048, batch_size: 1 }),
    3: node("VAEDecode", { samples: ["2", 0], vae: ["1", 2] }),
    4: shown(["3", 0]),
  },
  load: {
    1: checkpoint("tiny-sdxl"),
    2: node("CLIPTextEncode", { clip: ["1", 1], text: "a fox" }),
    3: node("EmptyLatentImage", { width: 512, height: 512, batch_size: 1 }),
    4: node("KSampler", {
      model: ["1", 0],
      positive: ["2", 0],
      negative: ["2", 0],
      latent_image: ["3", 0],
      seed: 1,
      steps: 4,
      cfg: 2,
      sampler_name: "euler",
      scheduler: "normal",
      denoise: 1,
    }),
    5: node("VAEDecode", { samples: ["4", 0], vae: ["1", 2] }),
    6: shown(["5", 0]),
  },
};

/** Runs a graph to an end; the service has to be ready meanwhile. A prompt of a million signs is too long for CLIP. */
async function compute(service, prompt, end) {
  const { status, text } = await service.post("/prompt", { prompt, client_id: "me" });
  if (status !== 200) return `the graph got status ${status}: ${text.slice(0, 200)}`;
  const { prompt_id } = JSON.parse(text);
  for (;;) {
    const ready = await service.get("/ready");
    if (ready.status !== 200) return `/ready got status ${ready.status}`;
    const { [prompt_id]: entry } = JSON.parse((await service.get(`/history/${prompt_id}`, [AUTH])).text);
    const { status_str } = entry?.status ?? {};
    if (status_str === end) return;
    if (status_str !== undefined)
      return `the run ended as ${status_str}: ${JSON.stringify(entry.status).slice(0, 300)}`;
    await sleep(100);
  }
}

/** A PNG file of one colour with 16 bits a sample: small to send, large in memory. */
function largePng() {
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc32(body));
    return Buffer.concat([length, body, sum]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(SIDE, 0);
  head.writeUInt32BE(SIDE, 4);
  head.set([16, 6], 8);
  const pixels = deflateSync(Buffer.alloc(SIDE * (1 + 8 * SIDE), 0), { level: 1 });
  const signature = Buffer.from("89504e470d0a1a0a", "hex");
  return Buffer.concat([signature, chunk("IHDR", head), chunk("IDAT", pixels), chunk("IEND", Buffer.alloc(0))]);
}

const uploadOf = (file) => {
  const part = 'Content-Disposition: form-data; name="image"; filename="large.png"\r\nContent-Type: image/png';
  return `--b\r\n${part}\r\n\r\n${file.toString("latin1")}\r\n--b--`;
};

async function uploadLarge(service) {
  const body = Buffer.from(uploadOf(largePng()), "latin1");
  const headers = [AUTH, "Content-Type: multipart/form-data; boundary=b", `Content-Length: ${body.length}`];
  const head = ["POST /upload/image HTTP/1.1", "Host: 127.0.0.1", ...headers, "", ""].join("\r\n");
  const { status, text } = await service.send(Buffer.concat([Buffer.from(head), body]));
  if (status !== 200) throw new Error(`the upload got status ${status}`);
  return JSON.parse(text);
}

/** Large pictures in every form, some of whose readers leave. */
async function viewLarge(service, { name, subfolder, type }) {
  const query = `filename=${name}&subfolder=${subfolder}&type=${type}`;
  const forms = ["channel=rgb", "channel=a", "preview=webp;90", "preview=jpeg"];
  for (const form of forms) service.pausedSocket(get(`/view?${query}&${form}`, [AUTH])).destroySoon();
  for (const form of forms.slice(0, 2)) {
    const { status } = await service.get(`/view?${query}&${form}`, [AUTH]);
    if (status !== 200) return `/view got status ${status} with ${form}`;
  }
}

/** Files whose headers are long, deep, full of tensors, or not JSON. */
function hostileModels(folder) {
  const entry = (i) => `"${i}":{"dtype":"F16","shape":[],"data_offsets":[0,0]}`;
  const headers = [
    `{${Array.from({ length: 400_000 }, (_, i) => entry(i))}}`,
    `{"a":${"[".repeat(10 * MIB)}`,
    `{"${"x".repeat(30 * MIB)}":0}`,
    `{${'"a":{},'.repeat(3 * MIB)}"b":{}}`,
    `{"a":{"dtype":"F16","shape":[${"1,".repeat(8 * MIB)}1],"data_offsets":[0,2]}}`,
    "\0".repeat(40 * MIB),
  ];
  for (let i = 0; i < 48; i++) {
    const kind = ["checkpoints", "loras", "vae"][i % 3];
    mkdirSync(join(folder, kind), { recursive: true });
    const header = headers[i % headers.length];
    const file = openSync(join(folder, kind, `hostile-${i}.safetensors`), "w");
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(header.length));
    writeSync(file, length);
    writeSync(file, header);
    closeSync(file);
  }
  writeFileSync(join(folder, "checkpoints/page.safetensors"), "<!DOCTYPE html>");
  return folder;
}

async function listModels(service) {
  const paths = ["/api/page/models", "/object_info/CheckpointLoaderSimple", "/models/checkpoints", "/api/page/models"];
  for (const path of paths) {
    const since = performance.now();
    const { status } = await service.get(path, [AUTH]);
    if (status !== 200) return `${path} got status ${status}`;
    const seconds = (performance.now() - since) / 1000;
    if (seconds > 3) return `${path} took ${seconds.toFixed(1)} s`;
  }
  const graph = { 1: checkpoint("hostile-0"), 2: node("PreviewAny", { source: ["1", 0] }) };
  await inLanes(2, 4, () =>
    service.send(post("/prompt", [AUTH, "Content-Type: application/json"], JSON.stringify({ prompt: graph }))),
  );
}
