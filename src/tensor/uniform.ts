import { Tensor } from "./tensor.js";

const SIZE = 624;
const SHIFT = 397;

/**
 * Float32 values of a shape, spread evenly over [0, 1): PyTorch's torch.rand on a CPU generator, which takes the low 24 bits
 * of each word of MT19937. Of the seed the low 32 bits count. Source: Matsumoto and Nishimura 1998, "Mersenne Twister".
 */
export function uniforms(shape: readonly number[], seed: number): Tensor {
  const out = Tensor.unfilled(shape);
  const state = new Uint32Array(SIZE);
  state[0] = seed;
  for (let i = 1; i < SIZE; i++) {
    const before = state[i - 1]!;
    state[i] = Math.imul(1812433253, before ^ (before >>> 30)) + i;
  }
  for (let i = 0; i < out.size; i++) {
    const at = i % SIZE;
    const mixed = (state[at]! & 0x80000000) | (state[(at + 1) % SIZE]! & 0x7fffffff);
    state[at] = state[(at + SHIFT) % SIZE]! ^ (mixed >>> 1) ^ (mixed & 1 ? 0x9908b0df : 0);
    out.data[i] = (tempered(state[at]!) & 0xffffff) / 2 ** 24;
  }
  return out;
}

function tempered(word: number): number {
  let y = word ^ (word >>> 11);
  y ^= (y << 7) & 0x9d2c5680;
  y ^= (y << 15) & 0xefc60000;
  return y ^ (y >>> 18);
}
