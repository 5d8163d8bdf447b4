// The points that gpu-check judges, in the words of its summary.
export const POINTS = {
  build: "native core, CUDA library and C++ tests build with plain cmake",
  doctor: "doctor uses the device",
  trial: "the trial finds every operation bit for bit as on the CPU",
  golden: "the golden vectors and the tests of nodes and graphs, every tensor on the device",
  philox: "Philox against golden/rng_cuda",
  torch: "Philox against PyTorch on this card",
  shapes: "CPU against CUDA, every operation on 200 random shapes, bit for bit",
  share: "element-wise kernels from 64 MiB on at 0.85 of the card's copy bandwidth",
  chain: "latentNoisy, injectNoise (mask, normalize, mix) on 64x4x128x128 at least 3 times PyTorch eager",
  memcheck: "compute-sanitizer memcheck",
  racecheck: "compute-sanitizer racecheck",
};
