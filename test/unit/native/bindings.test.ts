import assert from "node:assert/strict";
import type { NativeBindings } from "#src/native/bindings.js";
import { loadNative } from "#src/native/load.js";
import type { CudaBindings } from "#src/native/tensor-operations.js";

type All<T> = Readonly<Record<keyof T, true>>;

const TENSORS = {
  philoxRandn: true,
  philoxWords: true,
  scale: true,
  axpy: true,
  average: true,
  lerp: true,
  weightedSum: true,
  std: true,
  stdOfItems: true,
  scaledError: true,
  resizeBilinear: true,
  maskedBlend: true,
  composite: true,
  addMasked: true,
  injectNoise: true,
  planesToImage: true,
  channelToMask: true,
  floatToByte: true,
  byteToFloat: true,
} as const;

// the compiler wants every name of the type here, and no other; the tests want the module to have these
const CORE: All<NativeBindings> = {
  ...TENSORS,
  isa: true,
  isas: true,
  setIsa: true,
  threads: true,
  setThreads: true,
  lockFile: true,
  trimHeap: true,
  dieWithParent: true,
  graphicsAdapters: true,
  mtStateBytes: true,
  mtSeed: true,
  mtNormals: true,
  mtRandn: true,
  brownian: true,
  philoxSkip: true,
  latentToRgb: true,
  resize: true,
  resizeAntialiased: true,
  resizeToImage: true,
  resizeToBytes: true,
  convolveImage: true,
  blendImages: true,
  clampToUnit: true,
  extremesAlong: true,
  exp: true,
  expm1: true,
  log: true,
  log1p: true,
  pow: true,
  sin: true,
  cos: true,
  tan: true,
  atan: true,
  samplingTable: true,
  samplingTimestep: true,
  samplingSigma: true,
  linspace: true,
  schedule: true,
  floatToUint16: true,
  pixelHash: true,
  blake3: true,
  encodePng: true,
  pngBound: true,
  encodePngHere: true,
  deflatePng: true,
  decodePng: true,
  decodePngFrames: true,
  inspectPngFrames: true,
  decodePngFramesHere: true,
  takeSamples: true,
  unpackBlocks: true,
  repackBlocks: true,
  unpackMxfp8: true,
  unpackNvfp4: true,
  repackNvfp4: true,
  unpackNf4: true,
  cuda: true,
};

const CUDA: All<CudaBindings> = {
  ...TENSORS,
  open: true,
  architectures: true,
  memory: true,
  trim: true,
  wait: true,
  take: true,
  release: true,
  upload: true,
  download: true,
  copy: true,
  fill: true,
  resizedBlend: true,
  filterPng: true,
};

describe("native/bindings", () => {
  it("has exactly the functions that the native module exports", () => {
    assert.deepEqual(Object.keys(loadNative()).sort(), Object.keys(CORE).sort());
    assert.deepEqual(Object.keys(loadNative().cuda).sort(), Object.keys(CUDA).sort());
  });
});
