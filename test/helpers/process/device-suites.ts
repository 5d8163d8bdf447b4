/** Below build/test: what computes on tensors, golden vectors, nodes, graphs, pictures. Not what only reads texts. */
export const SUITES: readonly string[] = [
  ...["ops", "random", "tensor"].map((name) => `unit/tensor/${name}.test.js`),
  "unit/io/png/png.test.js",
  ...["core", "ext"].map((folder) => `unit/nodes/${folder}/**/*.test.js`),
  ...["core-nodes-golden", "frozen-inputs", "invoke", "values"].map((name) => `unit/nodes/${name}.test.js`),
  "unit/host/*.test.js",
  ...["preview", "sampling"].map((folder) => `unit/host/${folder}/**/*.test.js`),
  ...["tokenize", "encode", "prompt-golden"].map((name) => `unit/host/prompt/${name}.test.js`),
  "unit/graph/execute.test.js",
  "unit/render/receipt/receipt.test.js",
  "graphs.test.js",
  "sampling-graphs.test.js",
];
