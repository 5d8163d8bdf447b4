// Every row of the table, as data: operation, peers, and the ratio that must be reached.
import { join } from "node:path";
import { SIZE } from "./pictures.mjs";

/** A peer of a row; `must` is the least ratio, its time over ours. `subject`: if it is not the row's own operation. */
const peer = (name, must, subject) => ({ name, must, subject });
/** Copying memory: the operation reads and writes `moved` times the copy's bytes. */
const memcpy = (moved, must) => ({ name: "memcpy", must, subject: "memcpy", isOurs: true, weight: moved });

const LATENTS = {
  "16 Ki": [1, 4, 64, 64],
  "64 Ki": [1, 4, 128, 128],
  "1 Mi": [16, 4, 128, 128],
  "4 Mi": [64, 4, 128, 128],
};
/** Least ratios of a sum of terms to PyTorch's expression. */
const LEAST_OF_SUM = { "16 Ki": 2, "1 Mi": 1.5 };
const sized = (count) => ({ shape: LATENTS[count].join("x"), args: { shape: LATENTS[count] } });

/** A whole process that imports `name`, beside others: `what` is "import" (its time) or "imported" (its peak memory). */
const importing = (what, name, row) => ({
  operation: what === "import" ? "process that imports" : "its peak memory",
  subject: `${what} ${name}`,
  shape: name,
  args: {},
  peers: [
    { name: "Node alone", subject: `${what} nothing`, isOurs: true },
    peer("express", undefined, `${what} express`),
    peer("sharp", undefined, `${what} sharp`),
  ],
  ...row,
});
const importRows = (name) => [
  importing("import", name),
  importing("imported", name, { mode: "value", unit: "MB", per: 1e6 }),
];

/** A picture of 1024 x 1024 made smaller and larger. */
const resizeRows = (method, peers) =>
  [512, 1536].map((to) => ({
    operation: `resize, ${method}`,
    subject: "resizePicture",
    shape: `1024x1024x3 to ${to}`,
    args: { size: 1024, to, method },
    peers,
  }));

/** A step of 20 with a denoiser that costs nothing, at cfg 7; `limit` in ms. In one thread, ours and theirs have one processor. */
const samplingRow = (operation, args, { threads = 1 } = {}) => ({
  operation: `a step, ${operation}`,
  subject: "sampling",
  shape: "20 of 1x4x64x64, cfg 7",
  args: { shape: LATENTS["16 Ki"], ...args },
  per: 20,
  peers: [peer("torch", 5)],
  limit: 0.3,
  threads,
  isPinned: threads === 1,
  // several runs, as in a batch: the first one of a turn finds all caches cold
  turnMs: 40,
});

/**
 * Fields: operation, subject (key in the subjects), shape, args, peers; threads 1, unit ms and mode "time" if absent;
 * isPinned if the processes share one processor; turnMs if a turn has more than a few milliseconds.
 */
export function rows(folder) {
  const picture = (name, more = {}) => ({
    shape: `${SIZE}x${SIZE} ${name}`,
    args: { file: join(folder, `${name}.rgb`), size: SIZE, level: 4, ...more },
    pictures: [name],
  });
  const encode = (name, peers) => ({ operation: "PNG encode", subject: "encodePng", ...picture(name), peers });
  const bytes = (name) => ({
    operation: "PNG bytes",
    subject: "pngBytes",
    mode: "value",
    unit: "B",
    ...picture(name),
    peers: [peer("pillow", 1), peer("sharp"), peer("pngjs")],
  });
  const batch = { operation: "8 float images to PNG", subject: "encodeFloats", ...picture("natural", { count: 8 }) };
  const pictures = { size: 1024, batch: 4 };
  return [
    { operation: "randn", subject: "randn", ...sized("16 Ki"), peers: [peer("torch", 3.8)] },
    { operation: "randn", subject: "randn", ...sized("64 Ki"), peers: [peer("torch", 4.2)] },
    { operation: "randn", subject: "randn", ...sized("1 Mi"), peers: [peer("torch", 4.2)] },
    { operation: "randn", subject: "randn", ...sized("4 Mi"), peers: [peer("torch", 4.2)] },
    { operation: "randn", subject: "randn", ...sized("1 Mi"), threads: 2, peers: [peer("torch", 6.5)] },

    { operation: "memcpy", subject: "memcpy", ...sized("16 Ki"), peers: [] },
    { operation: "memcpy", subject: "memcpy", ...sized("1 Mi"), peers: [] },
    {
      operation: "scale",
      subject: "scale",
      ...sized("16 Ki"),
      peers: [peer("torch", 1.8), peer("torch, with out", undefined, "torch.scaleOut"), memcpy(1)],
    },
    {
      operation: "axpy",
      subject: "axpy",
      ...sized("16 Ki"),
      peers: [peer("torch", 1.8), peer("torch, with out", undefined, "torch.axpyOut"), memcpy(1.5)],
    },
    { operation: "average", subject: "average", ...sized("16 Ki"), peers: [peer("torch", 1.8), memcpy(1.5)] },
    {
      operation: "scale",
      subject: "scale",
      ...sized("1 Mi"),
      peers: [memcpy(1, 0.85), peer("torch"), peer("torch, with out", undefined, "torch.scaleOut")],
    },
    {
      operation: "axpy",
      subject: "axpy",
      ...sized("1 Mi"),
      peers: [memcpy(1.5, 0.85), peer("torch"), peer("torch, with out", undefined, "torch.axpyOut")],
    },
    { operation: "average", subject: "average", ...sized("1 Mi"), peers: [memcpy(1.5, 0.85), peer("torch")] },
    ...["16 Ki", "1 Mi"].map((count) => ({
      operation: "sum of 3 terms",
      subject: "weightedSum",
      ...sized(count),
      peers: [
        peer("torch", LEAST_OF_SUM[count]),
        peer("torch, with out", undefined, "torch.weightedSumOut"),
        memcpy(2),
      ],
    })),
    {
      operation: "mask blend",
      subject: "blend",
      ...sized("1 Mi"),
      peers: [peer("torch", 2.3), peer("numpy", 1.9), memcpy(1.625)],
    },
    {
      operation: "std, then divide",
      subject: "stdDivide",
      ...sized("1 Mi"),
      peers: [peer("numpy", 2.3), peer("torch", 3.2)],
    },
    {
      operation: "mask resize",
      subject: "resize",
      shape: "1024 to 128",
      args: { size: 1024, to: 128 },
      peers: [peer("torch", 1.3)],
    },
    {
      operation: "mask resize",
      subject: "resize",
      shape: "512 to 64",
      args: { size: 512, to: 64 },
      peers: [peer("torch", 1.3)],
    },
    {
      operation: "resize and blend",
      subject: "resizeBlend",
      shape: "1024 to 1x4x128x128",
      args: { shape: [1, 4, 128, 128], size: 1024 },
      peers: [peer("torch", 1.8)],
    },
    ...resizeRows("lanczos", [peer("pillow", 2), peer("pillow, bytes", 2, "pillow.resizeBytes")]),
    ...["bilinear", "bicubic", "area", "nearest-exact"].flatMap((method) => resizeRows(method, [peer("torch", 2)])),
    ...["euler", "dpmpp_2m"].map((sampler) => samplingRow(sampler, { sampler })),
    samplingRow("euler, RescaleCFG", { sampler: "euler", rescale: 0.7 }),
    ...["dpmpp_2m_sde", "dpmpp_sde"].flatMap((sampler) =>
      [1, 2].map((threads) => samplingRow(sampler, { sampler }, { threads })),
    ),
    {
      operation: "composite with mask",
      subject: "composite",
      shape: "1024x1024, 3 channels",
      args: { size: 1024 },
      peers: [peer("torch", 3), peer("torch, by planes", undefined, "torch.compositePlanes")],
    },
    {
      operation: "imageToMask",
      subject: "imageToMask",
      shape: "1024x1024x3",
      args: { size: 1024 },
      peers: [peer("numpy", 1.1), peer("torch", 1.8)],
    },
    {
      operation: "float to uint8",
      subject: "toBytes",
      shape: "8x1024x1024x3",
      args: { shape: [8, 1024, 1024, 3] },
      peers: [peer("torch", 15), peer("torch, with out", 5, "torch.toBytesOut")],
    },
    {
      operation: "sigmas karras",
      subject: "karras",
      shape: "10,000 steps",
      args: { steps: 10_000 },
      peers: [peer("torch", 5)],
    },
    {
      operation: "sigmas normal",
      subject: "normal",
      shape: "10,000 steps",
      args: { steps: 10_000 },
      peers: [peer("torch", 1.3)],
    },

    { ...encode("natural", [peer("sharp", 8), peer("pngjs", 8), peer("pillow", 15)]) },
    encode("noise", [peer("sharp", 8), peer("pngjs", 8), peer("pillow", 15)]),
    encode("text", [peer("sharp", 2), peer("pngjs"), peer("pillow")]),
    encode("flat", [peer("sharp", 2), peer("pngjs"), peer("pillow")]),
    ...["natural", "noise", "text", "flat", "soft"].map(bytes),
    {
      operation: "PNG decode",
      subject: "decodePng",
      shape: `${SIZE}x${SIZE} natural`,
      args: { file: join(folder, "natural.png") },
      pictures: ["natural"],
      peers: [peer("sharp", 1.15), peer("pngjs"), peer("pillow")],
    },
    { ...batch, peers: [peer("sharp", 8), peer("pngjs"), peer("pillow")] },
    { ...batch, threads: 2, peers: [{ name: "ours, 1 thread", must: 1.5, subject: "encodeFloats", isOurs: true }] },

    {
      operation: "call overhead",
      subject: "smallCall",
      shape: "scale of 16 values",
      args: {},
      unit: "us",
      peers: [],
      limit: 0.3,
    },
    {
      operation: "executor, a node",
      subject: "graph",
      shape: "1,000 nodes",
      args: { nodes: 1000 },
      unit: "us",
      per: 1000,
      peers: [],
      limit: 10,
    },
    {
      operation: "executor, a cached node",
      subject: "cachedGraph",
      shape: "1,000 nodes",
      args: { nodes: 1000 },
      unit: "us",
      per: 1000,
      peers: [],
    },
    ...importRows("latentkit"),
    ...importRows("latentkit/hooks"),
    { operation: "render", subject: "render", shape: "4 pictures 1024x1024", args: pictures, peers: [] },
    { operation: "render", subject: "render", shape: "4 pictures 1024x1024", args: pictures, threads: 2, peers: [] },
    {
      operation: "render, peak memory",
      subject: "renderPeak",
      shape: "4 pictures 1024x1024",
      args: pictures,
      mode: "value",
      unit: "MB",
      per: 1e6,
      peers: [{ name: "its tensors", subject: "renderTensors", isOurs: true }],
    },
  ];
}
