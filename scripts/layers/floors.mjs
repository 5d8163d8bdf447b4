/**
 * The order of what lies in each folder, lowest first. A floor is a line of names: a folder ends in "/", a file stands
 * without ".ts", "*" is every file that no floor names. What stands on one floor may not import each other, but for files.
 * A folder of src with folders in it needs an entry here, and each of its folders a floor.
 *
 * @type {Record<string, readonly string[]>}
 */
export const FLOORS = {
  "": [
    "base/",
    "native/",
    "tensor/",
    "io/",
    "host/",
    "nodes/",
    "graph/",
    "render/",
    "service/",
    "cli/",
    "index testing",
    "testing/",
  ],
  native: ["*", "cuda/"],
  tensor: ["*", "sampling/", "tensor", "shape", "device/", "random ops resize items latents channels parts", "image/"],
  io: ["*", "json/", "python-text safetensors", "png/", "pictures/ http/", "files/"],
  host: ["*", "sampling/", "preview/ prompt/", "checkpoint/"],
  "host/checkpoint": [
    "onnx/ files/",
    "weights/ tokenizer/",
    "recognition/ networks/",
    "session/ lora/",
    "text-encoder/ vae/ upscaler/ ip-adapter/",
    "clip-vision/",
    "diffusion/",
    "unet/ flux/ z-image/",
    "qwen-image/ sd3/",
    "runtime/ families/",
    "loader/ reports/",
    "*",
  ],
  "host/checkpoint/runtime": ["*", "devices/", "client", "remote/"],
  "host/checkpoint/weights": ["stored", "gguf/ packed/", "*"],
  "host/sampling": ["solver", "solvers/", "*"],
  nodes: ["*", "core/", "ext/ ipadapter/", "index", "invoke"],
  graph: ["*", "validation/ workflow/", "validate", "memory/", "disk-cache/", "surroundings", "execution/", "execute"],
  render: [
    "*",
    "config/ fill/",
    "schema/",
    "redact",
    "refuse-wrong",
    "receipt/",
    "render",
    "items/",
    "contact-sheet/ threads/",
    "batch/ renderer",
    "verify/",
    "snapshot/",
  ],
  "render/batch": ["names", "journal/", "*"],
  cli: ["terminal", "table/", "*", "batch/ reproducible/", "commands/", "main"],
  service: ["log", "agent/", "hooks/", "batch/ web/", "parts", "server/ store-runner", "worker/", "index postgres"],
  "service/web": ["page/", "shown-graph", "*", "routes"],
  "service/web/page": ["api", "parts/", "library batch/", "graph/", "runs/", "pictures/", "token", "main"],
  "service/hooks": [
    "*",
    "store/ files/",
    "webhooks/",
    "runs/",
    "incoming/",
    "http/",
    "hook-service",
    "comfy/",
    "service",
    "create-hook-service",
    "index",
  ],
  "service/hooks/runs": ["*", "task/", "queue/", "run-starter", "create-runs"],
  "service/hooks/store": ["*", "postgres/ sqlite/"],
  "service/hooks/store/postgres": ["driver schema", "connection", "*"],
  "service/hooks/comfy": ["*", "classic/", "comfy-routes"],
  "service/hooks/comfy/classic": ["pictures/", "*"],
  "service/hooks/http": ["*", "access/ stream/", "context gate", "openapi router", "routes/"],
};

/** Files of a layer that another layer may use alone: the contracts of the nodes, without any node. */
export const NARROW = [
  {
    from: "graph/",
    to: "nodes/",
    only: ["bends", "define", "host-files", "inputs", "registry", "sockets", "values"].map(
      (name) => `nodes/${name}.ts`,
    ),
  },
];

/**
 * Rooms with a face: who stands outside imports that file alone.
 *
 * @type {Record<string, string>}
 */
export const FACES = { "render/batch/journal": "journal.ts" };

/** Files with variables for the whole process or thread. Each holds no more than a cache or a lock. */
export const MAY_HOLD_STATE = [
  "base/abort.ts",
  "graph/memory/run-memory.ts",
  "io/json/values.ts",
  "native/cuda/cuda.ts",
  "native/load.ts",
  "render/threads/loaded-worker.ts",
  "render/threads/thread-pool.ts",
  "service/hooks/http/connection.ts",
  "tensor/device/compute.ts",
];

/** Entry files of the package: the users for whom src exports. */
export const ENTRIES = [
  "index.ts",
  "host/checkpoint/index.ts",
  "service/hooks/index.ts",
  "service/index.ts",
  "service/postgres.ts",
  "testing.ts",
  "testing/jest.ts",
  "testing/vitest.ts",
];
