import { describe, LatentkitError } from "../../base/errors.js";
import { CHECKED_LATER, checkOptions, FUNCTION, hasMethods, type OptionRules } from "../../base/options.js";
import type { ClipEncoder, FoundEmbedding, Warn } from "../types.js";
import { checkTokenNormalization, type PromptOptions, requireText, type TokenNormalization } from "./options.js";
import { parsePrompt, type Segment } from "./parse.js";

export type TokenizeOptions = Pick<PromptOptions, "tokenNormalization" | "warn">;

const TOKENIZE_RULES: OptionRules<TokenizeOptions> = { tokenNormalization: CHECKED_LATER, warn: FUNCTION };

/**
 * Tokenizes a prompt into chunks of 77, framed and padded, with normalised weights.
 * Fails on an unknown normalisation and on an encoder that returns anything but ids.
 */
export function tokenizePrompt(text: string, encoder: ClipEncoder, options: TokenizeOptions = {}): Token[][] {
  requireText(text);
  requireEncoder(encoder);
  checkOptions("tokenizePrompt", options, TOKENIZE_RULES);
  const normalization = checkTokenNormalization(options.tokenNormalization);
  return normalizeWeights(chunkSegments(parsePrompt(text), encoder, options.warn), normalization);
}

/** One position of a chunk; `word` is the number of its group of tokens from 1, 0 for start, end and padding. */
export interface Token {
  readonly id: number;
  readonly weight: number;
  readonly word: number;
}

/** Positions of a chunk: start, 75 tokens, end. */
export const CHUNK_LENGTH = 77;
/** A group with fewer tokens than this is not split over two chunks. */
const MAX_UNSPLIT = 8;

/** Throws value.invalid for anything but an encoder of a clip. */
export function requireEncoder(encoder: unknown): asserts encoder is ClipEncoder {
  if (hasMethods(encoder, "tokenize")) return;
  throw new LatentkitError("value.invalid", `Prompt: expected an encoder of a clip, received ${describe(encoder)}.`);
}

/** Tokenizes segments into framed chunks. A segment is one group of tokens, or several with embeddings in it. A prompt without tokens is one chunk. */
export function chunkSegments(segments: readonly Segment[], encoder: ClipEncoder, warn?: Warn): Token[][] {
  const start: Token = { id: encoder.start, weight: 1, word: 0 };
  const end: Token = { id: encoder.end, weight: 1, word: 0 };
  const pad: Token = { id: encoder.pad, weight: 1, word: 0 };
  const chunks: Token[][] = [];
  let chunk = [start];
  const finish = (): void => {
    chunk.push(end);
    while (chunk.length < CHUNK_LENGTH) chunk.push(pad);
    chunks.push(chunk);
    chunk = [start];
  };
  let word = 0;
  for (const [text, weight] of segments) {
    for (const ids of tokenGroups(text, encoder, warn)) {
      const isLong = ids.length >= MAX_UNSPLIT;
      let taken = 0;
      word++;
      while (taken < ids.length) {
        const left = ids.length - taken;
        const room = CHUNK_LENGTH - 1 - chunk.length;
        const count = left <= room ? left : isLong ? room : 0;
        for (const id of ids.slice(taken, taken + count)) chunk.push({ id, weight, word });
        taken += count;
        if (left > room) finish();
      }
    }
  }
  finish();
  return chunks;
}

/** Chunk of an empty prompt, padded with a token. */
export const emptyChunk = ({ start, end }: ClipEncoder, pad: number): number[] => [
  start,
  end,
  ...new Array<number>(CHUNK_LENGTH - 2).fill(pad),
];

/** The part of an encoder that splits a text. */
type Splitter = Pick<ClipEncoder, "name" | "tokenize" | "embedding">;

const MARK = "embedding:";
const WORD = /\S*/y;

/**
 * Tokenizes the text of a segment: one group of ids, or several if "embedding:NAME" stands at its beginning or after a
 * space or a line end and the encoder has embeddings. Each embedding is a group, and so is the text between two of them.
 * `warn` receives why one is left out.
 */
export function tokenGroups(text: string, encoder: Splitter, warn?: Warn): (readonly number[])[] {
  const groups: (readonly number[])[] = [];
  let plain = "";
  let at = 0;
  for (let mark = nextMark(text, 0, encoder); mark >= 0; mark = nextMark(text, at, encoder)) {
    plain += text.slice(at, mark);
    const word = wordAt(text, mark + MARK.length);
    at = mark + MARK.length + word.length;
    if (word === "") {
      plain += MARK;
      continue;
    }
    const { ids, rest, warning } = lookUp(word, encoder);
    if (warning !== undefined) warn?.(warning);
    groups.push(tokenIds(plain, encoder), ids);
    plain = rest;
  }
  groups.push(tokenIds(plain + text.slice(at), encoder));
  return groups;
}

const MARKED_WORD = /(^|[ \n])embedding:(\S+)/g;

/** A text without its words "embedding:NAME", for an encoder that takes no embeddings; the commas that end one stay. */
export function withoutEmbeddings(text: string): string {
  const plain = text.replace(MARKED_WORD, (_, _before, word: string) => word.slice(withoutCommas(word).length));
  return text.startsWith(MARK) ? plain.trimStart() : plain;
}

/** A word without the commas that end it. */
export function withoutCommas(word: string): string {
  let end = word.length;
  while (end > 0 && word[end - 1] === ",") end--;
  return word.slice(0, end);
}

function nextMark(text: string, from: number, { embedding }: Splitter): number {
  if (embedding === undefined) return -1;
  let mark = text.indexOf(MARK, from);
  while (mark > 0 && text[mark - 1] !== " " && text[mark - 1] !== "\n") mark = text.indexOf(MARK, mark + 1);
  return mark;
}

function wordAt(text: string, from: number): string {
  WORD.lastIndex = from;
  return WORD.exec(text)?.[0] ?? "";
}

function lookUp(word: string, encoder: Splitter): FoundEmbedding {
  const found = encoder.embedding!(word);
  requireIds(found.ids, encoder, "embedding()");
  return found;
}

function tokenIds(text: string, encoder: Splitter): readonly number[] {
  return requireIds(encoder.tokenize(text), encoder, "tokenize()");
}

function requireIds(ids: readonly number[], encoder: Splitter, method: string): readonly number[] {
  if (Array.isArray(ids) && ids.every((id) => Number.isInteger(id))) return ids;
  throw new LatentkitError(
    "value.invalid",
    `Clip encoder "${encoder.name}": expected ${method} to return a list of whole numbers, received ${describe(ids)}.`,
  );
}

/**
 * Normalises weights. length: a segment's distance from weight 1 shrinks with the square root of its token count.
 * mean: weights are moved so that the tokens of the text have mean weight 1. "length+mean": length first.
 */
export function normalizeWeights(chunks: Token[][], normalization: TokenNormalization): Token[][] {
  let result = chunks;
  if (normalization === "length" || normalization === "length+mean") result = byLength(result);
  if (normalization === "mean" || normalization === "length+mean") result = byMean(result);
  return result;
}

function byLength(chunks: Token[][]): Token[][] {
  const counts = new Map<number, number>();
  for (const { word } of chunks.flat()) counts.set(word, (counts.get(word) ?? 0) + 1);
  return mapWords(chunks, ({ weight, word }) => {
    const distance = weight - 1;
    return 1 + Math.sign(distance) * Math.sqrt((distance * distance) / counts.get(word)!);
  });
}

function byMean(chunks: Token[][]): Token[][] {
  let sum = 0;
  let count = 0;
  for (const { weight, word } of chunks.flat()) {
    if (word === 0) continue;
    sum += weight;
    count++;
  }
  if (count === 0) return chunks;
  const shift = 1 - sum / count;
  return mapWords(chunks, ({ weight }) => weight + shift);
}

/** Sets the weights of the tokens of the text; start, end and padding stay. */
function mapWords(chunks: Token[][], weightOf: (token: Token) => number): Token[][] {
  return chunks.map((chunk) =>
    chunk.map((token) => (token.word === 0 ? token : { ...token, weight: weightOf(token) })),
  );
}
