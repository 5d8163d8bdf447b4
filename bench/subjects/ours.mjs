// latentkit's side of each row: a subject creates its inputs and returns the function that is timed. All of them
// go through the JavaScript functions that nodes and users call, arguments checked. `out` is memory that is warm already.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { createCache, decodePng, encodePng, randn, sigmas } from "latentkit";
import * as ops from "#src/tensor/ops.js";
import { resizeImage } from "#src/tensor/resize.js";
import { chainRun } from "./chain.mjs";
import { pictureRender } from "./picture-render.mjs";
import { samplingRun } from "./sampling.mjs";

/** Values that no kernel can be lucky with, the same in every run. */
const values = (shape, seed = 1n) => randn(shape, { seed });
const unit = (shape, seed) => {
  const tensor = values(shape, seed);
  for (let i = 0; i < tensor.size; i++) tensor.data[i] = Math.abs(tensor.data[i]) % 1;
  return tensor;
};

export const ours = {
  randn({ shape }) {
    const out = values(shape);
    return () => randn(shape, { seed: 42n, out });
  },

  memcpy({ shape }) {
    const [x, out] = [values(shape).data, values(shape).data];
    return () => out.set(x);
  },
  scale({ shape }) {
    const [x, out] = [values(shape), values(shape)];
    return () => ops.scale(x, 0.18215, out);
  },
  axpy({ shape }) {
    const [x, y, out] = [values(shape), values(shape, 2n), values(shape)];
    return () => ops.axpy(x, y, 0.7, out);
  },
  average({ shape }) {
    const [x, y, out] = [values(shape), values(shape, 2n), values(shape)];
    return () => ops.average(x, y, out);
  },
  weightedSum({ shape }) {
    const [x, y, z, out] = [values(shape), values(shape, 2n), values(shape, 3n), values(shape)];
    return () =>
      ops.weightedSum(
        [
          [-6.5, x],
          [7.5, y],
          [0.3, z],
        ],
        out,
      );
  },
  blend({ shape }) {
    const [batch, , height, width] = shape;
    const [a, b, mask, out] = [values(shape), values(shape, 2n), unit([batch, height, width]), values(shape)];
    return () => ops.maskedBlend(a, b, mask, out);
  },
  stdDivide({ shape }) {
    const [x, out] = [values(shape), values(shape)];
    return () => ops.scale(x, 1 / ops.std(x), out);
  },
  resize({ size, to }) {
    const [mask, out] = [unit([1, size, size]), unit([1, to, to])];
    return () => ops.resizeBilinear(mask, to, to, out);
  },
  resizePicture({ size, to, method }) {
    const [image, out] = [unit([1, size, size, 3]), unit([1, to, to, 3])];
    return () => resizeImage(image, { method, height: to, width: to }, out);
  },
  resizeBlend({ shape, size }) {
    const [a, b, mask, out] = [values(shape), values(shape, 2n), unit([1, size, size]), values(shape)];
    return () => ops.maskedBlend(a, b, mask, out);
  },
  composite({ size }) {
    const shape = [1, 3, size, size];
    const [a, b, mask, out] = [unit(shape), unit(shape, 2n), unit([1, size, size]), unit(shape)];
    return () => ops.composite(a, b, 0, 0, mask, out);
  },
  imageToMask({ size }) {
    const [image, out] = [unit([1, size, size, 3]), unit([1, size, size])];
    return () => ops.channelToMask(image, 0, out);
  },
  toBytes({ shape }) {
    const images = unit(shape);
    const out = new Uint8Array(images.size).fill(1);
    return () => ops.toBytes(images, out);
  },

  karras:
    ({ steps }) =>
    () =>
      sigmas({ scheduler: "karras", steps }),
  normal:
    ({ steps }) =>
    () =>
      sigmas({ scheduler: "normal", steps }),

  encodePng({ file, size, level }) {
    const image = { data: readFileSync(file), width: size, height: size, channels: 3 };
    return () => encodePng(image, { level });
  },
  pngBytes({ file, size, level }) {
    const image = { data: readFileSync(file), width: size, height: size, channels: 3 };
    return async () => (await encodePng(image, { level })).length;
  },
  decodePng({ file }) {
    const bytes = readFileSync(file);
    return () => decodePng(bytes);
  },
  encodeFloats({ file, size, level, count }) {
    const image = ops.fromBytes(readFileSync(file), [size, size, 3]);
    return () => Promise.all(Array.from({ length: count }, () => encodePng(image, { level })));
  },

  smallCall() {
    const [x, out] = [values([1, 4, 2, 2]), values([1, 4, 2, 2])];
    return () => ops.scale(x, 0.5, out);
  },
  sampling: (options) => samplingRun(options),
  graph: ({ nodes }) => chainRun(nodes),
  cachedGraph: ({ nodes }) => chainRun(nodes, createCache()),
  render: (options) => pictureRender(options),
  renderPeak: (options) => () => inOwnProcess("peak", options),
  renderTensors: (options) => () => inOwnProcess("tensors", options),
};

function inOwnProcess(what, options) {
  const script = fileURLToPath(new URL("../render-memory.mjs", import.meta.url));
  return Number(execFileSync(process.execPath, [script, what, JSON.stringify(options)], { encoding: "utf8" }));
}
