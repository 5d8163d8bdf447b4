import { describe, LatentkitError } from "../../base/errors.js";
import { hasMethods } from "../../base/options.js";
import type { ClipEncoder, Warn } from "../types.js";
import type { Segment } from "./parse.js";
import { tokenGroups } from "./token-groups.js";

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
