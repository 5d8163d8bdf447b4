#!/usr/bin/env node
// Writes a model with the keys and sizes of a trained one and random weights, to measure time and memory with.
// Usage: make-full-size-model.mjs FAMILY FILE [F16|F8_E4M3]; scripts/full-size/families.mjs lists the families.
import { closeSync, openSync, writeSync } from "node:fs";
import { toHalves } from "../dist/host/checkpoint/runtime/onnx-session.js";
import { createGenerator } from "../dist/index.js";
import { FAMILIES, weightsOf } from "./full-size/families.mjs";

/** Values that repeat, a prime number: no two rows of a weight are equal. */
const VALUES = 1_048_573;
/** Bytes of a value of each type. */
const TYPES = { F16: 2, F8_E4M3: 1 };

const [family = "", file, type = "F16"] = process.argv.slice(2);
if (!Object.hasOwn(FAMILIES, family) || file === undefined || !Object.hasOwn(TYPES, type)) {
  const [families, types] = [FAMILIES, TYPES].map((each) => Object.keys(each).join("|"));
  console.error(`Usage: make-full-size-model.mjs ${families} FILE [${types}]`);
  process.exit(2);
}
const valueBytes = TYPES[/** @type {keyof typeof TYPES} */ (type)];

const weights = weightsOf(family);

/** @param {readonly number[]} sides */
const product = (sides) => sides.reduce((size, side) => size * side, 1);

/** Normal numbers. */
const noise = createGenerator({ seed: 1 }).randn([VALUES]).data;
/** @type {Map<string, Uint8Array>} */
const blocks = new Map();

/**
 * Bytes of normal numbers that a weight repeats: a network of such weights keeps values near 1.
 *
 * @param {string} key
 * @param {readonly number[]} shape
 */
function blockFor(key, shape) {
  const isFactor = /\.(?:gamma|running_var)$/.test(key) || (shape.length === 1 && /\.(?:weight|scale)$/.test(key));
  const mean = isFactor ? 1 : 0;
  const deviation = shape.length === 1 || isFactor ? 0.05 : 1 / Math.sqrt(product(shape.slice(1)));
  const name = `${mean} ${deviation}`;
  const known = blocks.get(name);
  if (known !== undefined) return known;
  const values = noise.map((value) => mean + deviation * value);
  const halves = type === "F16" ? toHalves(values) : Uint8Array.from(values, toF8);
  const block = new Uint8Array(halves.buffer, halves.byteOffset, halves.byteLength);
  blocks.set(name, block);
  return block;
}

/**
 * The nearest number of 8 bits: sign, 4 of exponent (bias 7), 3 of mantissa.
 *
 * @param {number} value
 */
function toF8(value) {
  const size = Math.min(Math.abs(value), 448);
  const exponent = Math.max(-6, Math.floor(Math.log2(size)));
  const steps = Math.round(size / 2 ** (exponent - 3));
  return (value < 0 ? 0x80 : 0) + (exponent + 6) * 8 + steps;
}

let end = 0;
/** @type {Record<string, unknown>} */
const header = {};
for (const [key, shape] of weights) {
  const from = end;
  end += valueBytes * product(shape);
  header[key] = { dtype: type, shape, data_offsets: [from, end] };
}
const text = Buffer.from(JSON.stringify(header));
const start = Buffer.alloc(8);
start.writeBigUInt64LE(BigInt(text.length));
const handle = openSync(file, "wx");
writeSync(handle, start);
writeSync(handle, text);
let phase = 0;
for (const [key, shape] of weights) {
  const block = blockFor(key, shape);
  for (let rest = valueBytes * product(shape); rest > 0; ) {
    const written = writeSync(handle, block.subarray(phase, phase + rest));
    rest -= written;
    phase = (phase + written) % block.length;
  }
}
closeSync(handle);
console.log(`${file}: ${weights.length} weights, ${product([end]) / valueBytes} parameters.`);
