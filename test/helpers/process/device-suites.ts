/** Tests of what computes on tensors: golden vectors, nodes, graphs, pictures. Below build/test. */
export const SUITES: readonly string[] = [
  ...["ops", "random", "tensor"].map((name) => `unit/tensor/${name}.test.js`),
  ...["png", "pixel-hash"].map((name) => `unit/io/png/${name}.test.js`),
  "unit/nodes/**/*.test.js",
  "unit/host/**/*.test.js",
  "unit/graph/execute.test.js",
  "unit/render/receipt/receipt.test.js",
  "graphs.test.js",
  "sampling-graphs.test.js",
];
