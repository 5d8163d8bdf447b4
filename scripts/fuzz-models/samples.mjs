import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { originalNames } from "#src/host/checkpoint/weights/gguf/open.js";
import { BLOCK_TYPES } from "#src/host/checkpoint/weights/stored.js";
import { readSafetensors } from "#src/io/safetensors.js";
import { seededRandom } from "../seeded-random.mjs";
import { safetensorsSample } from "./damaged-file.mjs";
import { ggufSample, numberPair, numbersPair, textPair, textsPair } from "./gguf.mjs";

const fileOf = (path) => fileURLToPath(new URL(path, import.meta.url));
const GOLDEN = ["models-flux", "models-z-qwen", "models-adapters"].map((name) => fileOf(`../../test/golden/${name}`));
const KINDS = [
  "checkpoints",
  "diffusion_models",
  "text_encoders",
  "vae",
  "loras",
  "model_patches",
  "clip_vision",
  "ipadapter",
  "controlnet",
];
/** Few weights, which make another model out of one. */
const PARTS = ["flux_fill_img_in.safetensors.gz", "flux2_guidance_in.safetensors.gz"];
const ENDING = ".safetensors";

/** Fills a folder with small sound models of every family. @param {string} folder */
export function makeModels(folder) {
  execFileSync(process.execPath, [fileOf("../make-tiny-models.mjs"), folder]);
  for (const golden of GOLDEN)
    for (const kind of readdirSync(golden).filter((name) => KINDS.includes(name)))
      for (const name of readdirSync(join(golden, kind)).filter((file) => !PARTS.includes(file))) {
        const path = join(folder, kind, name.replace(/\.gz$/, ""));
        mkdirSync(dirname(path), { recursive: true });
        writeFileSync(path, gunzipSync(readFileSync(join(golden, kind, name))));
      }
}

/** The samples of a folder: each of its files, and those that GGUF files are made of as such too. @param {string} folder */
export function samplesOf(folder) {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(ENDING));
  return names.sort().flatMap((name) => {
    const bytes = readFileSync(join(folder, name));
    const key = basename(name, ENDING);
    const [architecture, llama] = Object.hasOwn(QUANTISED, key) ? QUANTISED[key] : [];
    const whole = safetensorsSample(name, bytes);
    return architecture === undefined ? [whole] : [whole, quantised(`${key}.gguf`, bytes, { architecture, llama })];
  });
}

/** Architectures of files that are made GGUF files, and their names in llama.cpp. */
const QUANTISED = {
  "tiny-sd1": ["sd1"],
  flux_dev: ["flux"],
  z_image_tiny: ["lumina2"],
  qwen_image_tiny: ["qwen_image"],
  t5xxl_fp16: ["t5encoder", { block: "enc.blk.", others: ["enc.output_norm", "token_embd"] }],
  qwen_3_tiny: ["qwen3", { block: "blk.", others: ["token_embd", "output_norm", "output"] }],
  "qwen_2.5_vl_tiny": ["qwen2vl", { block: "blk.", others: ["token_embd", "output_norm", "output"] }],
};
const LAYERS = [
  "attn_q",
  "attn_k",
  "attn_v",
  "attn_o",
  "attn_output",
  "attn_rel_b",
  "attn_q_norm",
  "attn_k_norm",
  "attn_norm",
  "ffn_gate",
  "ffn_up",
  "ffn_down",
  "ffn_norm",
];
const MOST_BLOCKS = 8;

/** Names in llama.cpp by those of the original files. */
function llamaNames({ block, others }) {
  const layers = Array.from({ length: MOST_BLOCKS }, (_, n) => LAYERS.map((layer) => `${block}${n}.${layer}`));
  const names = [...others, ...layers.flat()].map((name) => `${name}.weight`);
  const original = originalNames(names);
  return new Map(names.map((name) => [original(name), name]));
}

const SINGLE = { F32: 0, F16: 1, BF16: 30 };
/** Rows of weights whose own no block divides. */
const ROW = 256;

/** A GGUF file with the weights of another, in blocks of all types in turn. Values do not matter. */
function quantised(name, file, { architecture, llama }) {
  const rename = llama === undefined ? new Map() : llamaNames(llama);
  const pairs = [
    textPair("general.architecture", architecture),
    numberPair("general.file_type", 2),
    numberPair("general.alignment", 32),
    textsPair("tokenizer.ggml.tokens", ["<pad>", "</s>", "▁", "a".repeat(5000)]),
  ];
  const next = seededRandom(1);
  let turn = 0;
  const tensors = [...readSafetensors(file).tensors].map(([key, { dtype, shape, bytes }]) => {
    const own = rename.get(key) ?? key;
    const count = shape.reduce((product, side) => product * side, 1);
    const type = Object.values(BLOCK_TYPES)[turn % Object.keys(BLOCK_TYPES).length];
    const isOwn = shape.length > 1 && shape[shape.length - 1] % type.values === 0;
    if (shape.length < 2 || !(isOwn || count % ROW === 0))
      return { name: own, type: SINGLE[dtype], sides: [...shape], offset: 0, bytes };
    turn++;
    if (!isOwn) pairs.push(numbersPair(`comfy.gguf.orig_shape.${own}`, shape));
    const blocks = Uint8Array.from({ length: (count / type.values) * type.bytes }, () => next(256));
    return { name: own, type: type.id, sides: isOwn ? [...shape] : [count / ROW, ROW], offset: 0, bytes: blocks };
  });
  return ggufSample(name, pairs, tensors);
}
