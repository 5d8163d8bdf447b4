// Subjects of the CUDA library: operations on memory of the device, and a chain of tensors that stay there.
import { randn, Tensor } from "latentkit";
import { injectNoise, scale } from "../../dist/tensor/ops.js";
import { scaledRandn } from "../../dist/tensor/random.js";
import { openDevice } from "../../scripts/gpu-check/device.mjs";

const FLOAT = Float32Array.BYTES_PER_ELEMENT;

const { cuda, handle } = openDevice();

/** `count` blocks of n floats, all of them 0.25: the values do not change the time. */
function blocks(n, count) {
  return Array.from({ length: count }, () => {
    const memory = cuda.take(handle, n * FLOAT);
    cuda.fill(memory, 0.25);
    return memory;
  });
}

/** Many launches and one wait, so that neither is measured alone; `forget` releases the memory. */
function queued(operation) {
  return ({ n, repeats }) => {
    const { call, memory } = operation(n);
    const run = () => {
      for (let i = 0; i < repeats; i++) call();
      cuda.wait(handle);
    };
    const forget = () => {
      for (const block of memory) cuda.release(block);
      cuda.trim(handle);
    };
    return { run, forget };
  };
}

const over = (inputs, call) =>
  queued((n) => {
    const memory = blocks(n, inputs + 1);
    return { memory, call: () => call(...memory, n) };
  });

/** Bytes that each operation reads and writes of a float of its output. */
export const TRAFFIC = { copy: 8, scale: 8, axpy: 12, average: 12, lerp: 12, blend: 16, toBytes: 5, fromBytes: 5 };

/** Each subject returns { run, forget }. */
export const SUBJECTS = {
  copy: over(1, (out, a) => cuda.copy(out, a, 0)),
  scale: over(1, (out, a) => cuda.scale(out, a, 0.18215)),
  axpy: over(2, (out, a, b) => cuda.axpy(out, a, b, 0.7)),
  average: over(2, (out, a, b) => cuda.average(out, a, b)),
  lerp: over(2, (out, a, b) => cuda.lerp(out, a, b, 0.3)),
  // one channel: the mask has as many values as the rest
  blend: over(3, (out, a, b, mask, n) => cuda.maskedBlend(out, a, b, mask, 1, 1, n, 1)),
  toBytes: queued((n) => {
    const [from] = blocks(n, 1);
    const to = cuda.take(handle, n);
    return { memory: [from, to], call: () => cuda.floatToByte(to, from) };
  }),
  fromBytes: queued((n) => {
    const [from, [to]] = [cuda.take(handle, n), blocks(n, 1)];
    return { memory: [from, to], call: () => cuda.byteToFloat(to, from) };
  }),
  /**
   * latentNoisy, then injectNoise with a mask, normalize and a mix, into tensors that are there. What is mixed has no other
   * reader.
   */
  chain({ shape, mask: side }) {
    const [base, noise, out] = [1, 2, 3].map((seed) => randn(shape, { seed, source: "GPU" }));
    // between 0 and 1, and on the device
    const mask = scale(Tensor.from(new Float32Array(side * side).fill(0.5), [1, side, side]), 1);
    const run = () => {
      scaledRandn(shape, 14.6146, { seed: 42, source: "GPU", out: noise });
      const random = randn(shape, { seed: 43, source: "GPU" });
      injectNoise(base, noise, { strength: 0.7, normalize: true, mask, mix: 0.3, random }, out);
      cuda.wait(handle);
    };
    return { run, forget() {} };
  },
};
