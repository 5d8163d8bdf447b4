import { Tensor } from "latentkit";

interface Encoder {
  name: string;
  start: number;
  end: number;
  pad: number;
  length: 77;
  tokenize(text: string): number[];
  encode(chunks: number[][]): Promise<{ cond: Tensor; pooled: Tensor }>;
}

const DIM = 8;

/** The tokenizer and encoder that the golden files prompt_encode and composite_cond were made with (see their meta). */
export function fakeClip(kind: "l" | "xl"): { encoders: Encoder[] } {
  const l = encoder("l", 0, 49407);
  return { encoders: kind === "l" ? [l] : [l, encoder("g", 11, 0)] };
}

function encoder(name: string, salt: number, pad: number): Encoder {
  return { name, start: 49406, end: 49407, pad, length: 77, tokenize, encode: async (chunks) => encode(chunks, salt) };
}

function tokenize(text: string): number[] {
  const ids: number[] = [];
  for (const [word] of text.toLowerCase().matchAll(/[^\s,]+|,/gu)) {
    if (word === ",") ids.push(267);
    else for (const id of pieceIds(Array.from(word, (character) => character.codePointAt(0)!))) ids.push(id);
  }
  return ids;
}

function pieceIds(points: number[]): number[] {
  const ids: number[] = [];
  for (let from = 0; from < points.length; from += 6) {
    const sum = points.slice(from, from + 6).reduce((total, point, k) => total + (k + 1) * point, 0);
    ids.push(300 + (sum % 40000));
  }
  return ids;
}

function encode(chunks: number[][], salt: number): { cond: Tensor; pooled: Tensor } {
  const cond = Tensor.zeros([chunks.length, 77, DIM]);
  const pooled = Tensor.zeros([chunks.length, DIM]);
  for (const [c, ids] of chunks.entries()) {
    const sum = ids.reduce((total, id) => total + id, salt);
    for (let d = 0; d < DIM; d++) {
      pooled.data[c * DIM + d] = (((sum * (d + 1)) % 89) - 44) / 16;
      for (const [j, id] of ids.entries()) {
        const own = ((id * (d + 3) + 7 * j) % 97) - 48;
        cond.data[(c * 77 + j) * DIM + d] = own / 32 + ((sum + 5 * d) % 31) / 64;
      }
    }
  }
  return { cond, pooled };
}
