const INIT_A = 0x43b0d7e5;
const MULT_A = 0x931e8875;
const INIT_B = 0x8b51f9dd;
const MULT_B = 0x58f38ded;
const MIX_MULT_L = 0xca01f9dd;
const MIX_MULT_R = 0x4973f715;

/**
 * Seeds of a tree of streams: the first word of numpy's SeedSequence for the key of a stream. The key is the 32-bit words
 * of the spawn key's numbers, one number after the other, the lowest word of each first; 0 has one word.
 */
export type SeedSequence = (spawnKey: readonly number[]) => number;

/**
 * numpy's SeedSequence of an entropy from 0 that fits into the pool (O'Neill's seed_seq hash). Only the first word of the
 * pool is followed past the entropy: no other enters the result.
 */
export function seedSequence(entropy: bigint, poolSize = 24): SeedSequence {
  const hash = { constant: INIT_A };
  const words = wordsOf(entropy);
  const pool = Array.from({ length: poolSize }, (_, i) => hashmix(hash, words[i] ?? 0));
  for (let from = 0; from < poolSize; from++)
    for (let to = 0; to < poolSize; to++) if (from !== to) pool[to] = mix(pool[to]!, hashmix(hash, pool[from]!));
  const [first] = pool as [number];
  // a word is hashed once for each word of the pool
  let stride = 1;
  for (let i = 0; i < poolSize; i++) stride = Math.imul(stride, MULT_A);
  return (spawnKey) => {
    let word = first;
    let { constant } = hash;
    for (const part of spawnKey) {
      word = mix(word, hashed(part, constant));
      constant = Math.imul(constant, stride);
    }
    return generated(word);
  };
}

/** Words of a number from the lowest; 0 has one. */
function wordsOf(value: bigint): number[] {
  const words: number[] = [];
  for (let rest = value; rest > 0n || words.length === 0; rest >>= 32n) words.push(Number(rest & 0xffffffffn));
  return words;
}

function hashmix(hash: { constant: number }, value: number): number {
  const word = hashed(value, hash.constant);
  hash.constant = Math.imul(hash.constant, MULT_A);
  return word;
}

function hashed(value: number, constant: number): number {
  const word = Math.imul(value ^ constant, Math.imul(constant, MULT_A));
  return word ^ (word >>> 16);
}

function mix(x: number, y: number): number {
  const word = (Math.imul(x, MIX_MULT_L) - Math.imul(y, MIX_MULT_R)) | 0;
  return word ^ (word >>> 16);
}

/** First word of numpy's generate_state. */
function generated(pooled: number): number {
  const word = Math.imul(pooled ^ INIT_B, Math.imul(INIT_B, MULT_B));
  return (word ^ (word >>> 16)) >>> 0;
}
