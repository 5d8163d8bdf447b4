import type { Token } from "./chunks.js";
import type { TokenNormalization } from "./options.js";

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
