import { describe, LatentkitError } from "../../base/errors.js";
import { createGenerator } from "../../tensor/random.js";
import { Tensor } from "../../tensor/tensor.js";
import type { Clip, ClipEncoder } from "../types.js";

const LENGTH = 77;
const START = 49406;
const END = 49407;
/** Number of characters of a token. */
const PIECE = 6;
/** Number of cached token rows; the oldest is evicted first. */
const CACHED_ROWS = 4096;
/** Shares of position and of the whole text in a token's row, beside the token's own. */
const POSITION_SHARE = 0.25;
const CONTEXT_SHARE = 0.5;
/** Share of an earlier layer's row. */
const LAYER_SHARE = 0.25;

/**
 * Makes a clip without weights: words are hashed to ids, ids seed their rows. Only "l", or "l" and "g". An earlier layer
 * than -1 adds one row of its own to those of all tokens; pooled outputs are the last layer's, as in a real clip.
 */
export function previewClip(kind: "l" | "lg", layer = -1): Clip {
  const l = encoder({ ...L, layer });
  const clip: Clip = {
    encoders: kind === "l" ? [l] : [l, encoder({ name: "g", dim: 1280, pad: 0, salt: 0x6700_0000, layer })],
    atLayer: (other) => (other === layer ? clip : previewClip(kind, requireLayer(other))),
  };
  return Object.freeze(clip);
}

function requireLayer(layer: number): number {
  if (Number.isInteger(layer) && layer >= -24 && layer <= -1) return layer;
  const message = `Clip layer: expected a whole number from -24 to -1, received ${describe(layer)}.`;
  throw new LatentkitError("value.out-of-range", message);
}

interface Shape {
  readonly name: string;
  readonly dim: number;
  readonly pad: number;
  /** Separates the rows of encoders; ids take the low 17 bits. */
  readonly salt: number;
  /** -1 to -24. */
  readonly layer: number;
}

const L: Omit<Shape, "layer"> = { name: "l", dim: 768, pad: END, salt: 0x6c00_0000 };

/** Own row of a word's first piece in encoder "l", without position and context. */
export const wordRow = (word: string): Float32Array => seededRows(L, hash(word.slice(0, PIECE)), 1);

/** Own row of the token that ends a text. */
export const endRow = (): Float32Array => seededRows(L, END, 1);

const seededRows = ({ salt, dim }: Omit<Shape, "layer">, seed: number, count: number): Float32Array =>
  createGenerator({ seed: salt + seed }).randn([count, dim]).data;

function encoder(shape: Shape): ClipEncoder {
  const { name, dim, pad, layer } = shape;
  const rows = new Map<number, Float32Array>();
  const rowOf = (id: number): Float32Array => {
    const cached = rows.get(id);
    if (cached !== undefined) return cached;
    const row = seededRows(shape, id, 1);
    const oldest = rows.keys().next();
    if (rows.size >= CACHED_ROWS && !oldest.done) rows.delete(oldest.value);
    rows.set(id, row);
    return row;
  };
  let positions: Float32Array | undefined;
  let ofLayer: Float32Array | undefined;

  const encode = async (chunks: number[][]): Promise<{ cond: Tensor; pooled: Tensor }> => {
    requireIds(chunks, name);
    const cond = Tensor.zeros([chunks.length, LENGTH, dim]);
    const pooled = Tensor.zeros([chunks.length, dim]);
    positions ??= seededRows(shape, END + 1, LENGTH);
    if (layer !== -1) ofLayer ??= seededRows(shape, END + 1 - layer, 1);
    for (const [c, ids] of chunks.entries()) {
      const context = contextOf(ids, rowOf, dim);
      pooled.data.set(context, c * dim);
      for (let j = 0; j < ids.length; j++) {
        mixRow(cond.data, (c * LENGTH + j) * dim, rowOf(ids[j]!), positions, j * dim, context);
      }
    }
    if (ofLayer !== undefined) addRow(cond.data, ofLayer);
    return { cond, pooled };
  };
  return Object.freeze({ name, start: START, end: END, pad, length: LENGTH, tokenize, encode });
}

/** out[at …] = own row + a share of its position's + a share of the text's. A separate function, so that no number is boxed. */
function mixRow(
  out: Float32Array,
  at: number,
  own: Float32Array,
  positions: Float32Array,
  position: number,
  context: Float64Array,
): void {
  for (let d = 0; d < own.length; d++) {
    out[at + d] = own[d]! + POSITION_SHARE * positions[position + d]! + CONTEXT_SHARE * context[d]!;
  }
}

/** Adds a share of a row to every row. */
function addRow(rows: Float32Array, row: Float32Array): void {
  for (let i = 0; i < rows.length; i++) rows[i]! += LAYER_SHARE * row[i % row.length]!;
}

/** Mean row of the tokens of the text, those between start and the first end. */
function contextOf(ids: readonly number[], rowOf: (id: number) => Float32Array, dim: number): Float64Array {
  const end = ids.indexOf(END, 1);
  const tokens = ids.slice(1, end < 0 ? ids.length : end);
  const context = new Float64Array(dim);
  for (const id of tokens) {
    const row = rowOf(id);
    for (let d = 0; d < dim; d++) context[d]! += row[d]!;
  }
  for (let d = 0; d < dim; d++) context[d]! /= Math.max(1, tokens.length);
  return context;
}

/** Splits a text into words, numbers and single signs in lower case, six characters a token. */
function tokenize(text: string): number[] {
  const ids: number[] = [];
  for (const [word] of text.toLowerCase().matchAll(/[\p{L}\p{M}\p{N}]+|[^\s\p{L}\p{M}\p{N}]/gu)) {
    for (let from = 0; from < word.length; from += PIECE) ids.push(hash(word.slice(from, from + PIECE)));
  }
  return ids;
}

/** Hashes UTF-16 units by FNV-1a to an id below the start token's. */
function hash(piece: string): number {
  let state = 0x811c9dc5;
  for (let i = 0; i < piece.length; i++) state = Math.imul(state ^ piece.charCodeAt(i), 0x01000193);
  return (state >>> 0) % START;
}

function requireIds(chunks: readonly (readonly number[])[], name: string): void {
  for (const ids of chunks) {
    const foreign = ids.find((id) => !(Number.isInteger(id) && id >= 0 && id <= END));
    if (ids.length === LENGTH && foreign === undefined) continue;
    throw new LatentkitError(
      "value.invalid",
      `Clip encoder "${name}": expected chunks of ${LENGTH} ids from 0 to ${END}, received ${describe(foreign ?? ids)}.`,
    );
  }
}
