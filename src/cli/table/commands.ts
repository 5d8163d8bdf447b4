import { MOST_MODELS_BYTES, NETWORK_DEVICES } from "../../host/checkpoint/session/options.js";
import type { Terminal } from "../terminal.js";
import type { Arguments } from "./arguments.js";
import {
  bytes,
  type Command,
  choice,
  flag,
  list,
  operand,
  operandOr,
  operands,
  optionalOperand,
  pairs,
  text,
  textOr,
  texts,
  type ValuesOf,
  wholeNumber,
} from "./option.js";

/** Options of commands that list models. */
export const modelOptions = {
  models: texts("DIR", "ComfyUI's models folder, or an extra_model_paths.yaml"),
};

/** Options of commands that run networks. */
export const networkOptions = {
  ...modelOptions,
  "models-device": choice("DEVICE", "where networks run", NETWORK_DEVICES, {
    absent: "a GPU that passed doctor's test, else cpu",
  }),
  "models-memory": bytes("BYTES", "memory for their weights, such as 6GB; on a GPU, its own memory", MOST_MODELS_BYTES),
};

const config = text("FILE", "configuration, YAML or JSON");
const input = text("DIR", "folder of the input images", { absent: "input beside the graph, else ./input" });
const device = text("DEVICE", "device for tensors: auto, cpu or cuda:N", { absent: "auto" });
const offline = flag("refuse graphs whose nodes use the network or a key");
const alias = pairs("OLD=NEW", "run nodes of class OLD (or of prefix OLD) as NEW");
const targets = list("IDS", "nodes to compute, separated by commas", { absent: "the graph's output nodes" });

/** An argument that is neither an option nor a graph is the picture's name. */
const PICTURE = /^(?!-)(?!.*\.json$)./is;

/** Options of `render` that make a batch of it. */
export const BATCH_OPTIONS = {
  seeds: text("SEEDS", "0..999, 1,2,10..20 or random:50, for every seed that --set does not set", {
    above: "Batch options (any of these makes a batch):",
    elsewhere: ["n", "count", "batch", "batch-count"],
  }),
  items: text(
    "ITEMS",
    "a file with one item per line, .csv with keys in its first row, .jsonl with an object per line or .txt with a prompt per line, - for the first two from standard input; or pictures for {{image}} or the one image input, a folder or 'photos/**/*.png' in quotes",
  ),
  sweep: texts("KEY=VALUES", "3.steps=10,20,30 or 5.seed=0..3 or a JSON list; several make every combination"),
  check: flag("check the items without rendering; print how many files they make, and the first names"),
  limit: wholeNumber("N", "render only the first N items", { min: 1 }),
  name: text("TEMPLATE", "file names, such as {prefix}_{5.seed}_{number}, also with columns of the items"),
  "extra-columns": flag("ignore columns that match nothing in the graph"),
  concurrency: wholeNumber("N", "items that render at once", { min: 1, absent: "one for each processor" }),
  retry: wholeNumber("N", "retries per failed item", { min: 0, absent: "0" }),
  "fail-fast": flag("stop starting items after the first failure"),
  resume: flag("continue an interrupted batch, skipping finished items"),
  journal: text("FILE", "record of finished items, which --resume reads", {
    absent: "GRAPH.journal.jsonl in the output folder",
  }),
  cache: text("DIR", "keep results of nodes on disk, for other batches and processes"),
  "contact-sheet": text("FILE.png", "the pictures in a grid", {
    absent: "contact-sheet.png in the output folder",
    bare: PICTURE,
  }),
  grid: text("FILE.png", "sweeps as labelled rows, columns and pages", {
    absent: "grid.png in the output folder",
    bare: PICTURE,
    excludes: { options: ["items"], because: "a grid shows only sweeps and seeds" },
  }),
  store: text("URL", "render in the workers of this PostgreSQL store", {
    absent: "the configuration's store",
    bare: /^[a-z]{2,}:/i,
    excludes: {
      options: ["cache", "device", "models", "models-device", "models-memory"],
      because: "each worker uses its own",
    },
  }),
};

/** Keys of --set that name an input without its node. */
const SET_KEYS = ["prompt", "negative", "seed", "steps", "width", "height"];

const RENDER_OPTIONS = {
  set: pairs(
    "KEY=VALUE",
    "6.text=… sets an input of node 6, any other key fills {{key}}; prompt, negative, seed, steps, width and height are the one input of that name; 5.seed=random draws a seed",
    { elsewhere: SET_KEYS },
  ),
  targets,
  out: text("DIR", "folder for the files", { absent: "./out", elsewhere: ["o", "output", "output-dir", "outdir"] }),
  input,
  ...networkOptions,
  config,
  device,
  format: text("TYPE", "format of the pictures: png, webp, jpeg or avif", { absent: "png" }),
  quality: wholeNumber("N", "quality of webp, jpeg and avif files, 1 to 100", { min: 1, absent: "90" }),
  lossless: flag("keep every pixel of webp and avif files"),
  bits: wholeNumber("BITS", "bits per sample of png files, 8 or 16", { min: 1, absent: "8" }),
  metadata: text("POLICY", "metadata in pictures: full, prompt or none", { absent: "full" }),
  parameters: flag("add the line of settings that A1111 writes"),
  redact: texts("KEY", "hide a value in pictures: 6.text, or a key at any depth"),
  partial: flag("leave out outputs that cannot be computed, instead of refusing the graph"),
  offline,
  alias,
  json: flag("print one event per line on stdout, the result last"),
  quiet: flag("print no progress"),
  ...BATCH_OPTIONS,
};

const GRAPH = operand("a graph in API format, a workflow as the editor saves it, or a picture that carries either");
const IMAGE = operands("pictures, or folders (searched recursively)");
const PORT = { min: 0, max: 65535 };
/** Options of processes that serve or work until they are stopped. */
const processOptions = {
  ...networkOptions,
  device,
  offline,
  quiet: flag("print no messages; logs still go to stderr"),
};

// Tables apart from the commands' code: help and a mistyped option open 8 files of a release, not 69.
/** All commands by their names. The code of each is in ../commands, and loaded when it runs. */
export const COMMANDS = {
  init: {
    summary: "Copy the example graphs into a folder.",
    operands: { FOLDER: operandOr("examples", "the folder; existing files are never overwritten") },
    options: { quiet: flag("do not print the next step") },
  },
  render: {
    summary: "Render a graph, once or many times, and print its files.",
    operands: { GRAPH },
    options: RENDER_OPTIONS,
    notes: ["Ctrl-C finishes the items in progress; a second one stops immediately."],
    examples: [
      "graph.json --set prompt='a quiet lake' --set seed=random",
      "graph.json --items prompts.csv --name '{prefix}_{number}' --resume",
      "graph.json --sweep 3.steps=10,20,30 --seeds 1..4 --grid",
    ],
    isReadToEnd: true,
  },
  serve: {
    summary: "Serve HTTP: start runs and stream their events.",
    operands: {},
    options: {
      config,
      host: text("ADDRESS", "address to listen on; one that others can reach needs a hook token", {
        elsewhere: ["listen"],
        absent: "127.0.0.1",
      }),
      port: wholeNumber("PORT", "port to listen on, 0 for any free one", { ...PORT, absent: "8188", elsewhere: ["p"] }),
      store: text("URL", "where runs are kept: memory:, sqlite:FILE or postgres://…", {
        absent: "sqlite:./latentkit.db",
      }),
      "no-render": flag("render nothing here; latentkit worker processes do (needs a PostgreSQL store)"),
      graph: pairs("NAME=FILE", "a graph that requests can select by name; the first is the default", {
        isOnce: true,
      }),
      open: flag("open the service's page in a browser, with a hook token for this start if none is set"),
      json: flag("print one event per line on stdout: listening, stopped"),
      ...processOptions,
    },
    notes: [
      "LATENTKIT_CHANNELS_WEB_HOOKS_TOKEN sets the hook token.",
      "SIGTERM or Ctrl-C finishes the running runs; a second one stops immediately. SIGHUP reloads the graphs.",
    ],
    examples: ["--graph portrait=portrait.json --open", "--config latentkit.yaml --host 0.0.0.0"],
    reloads: true,
  },
  worker: {
    summary: "Claim runs from a PostgreSQL store and render them.",
    operands: {},
    options: {
      config,
      store: text("URL", "postgres://USER:PASSWORD@HOST/DATABASE, the same as the front ends use"),
      concurrency: wholeNumber("N", "runs at the same time", { min: 1, max: 9999, absent: "4" }),
      port: wholeNumber("PORT", "port for /health, /ready and /metrics, 0 for any free one", {
        ...PORT,
        absent: "the worker does not listen",
      }),
      host: text("ADDRESS", "address of that port", { absent: "127.0.0.1" }),
      json: flag("print one event per line on stdout: working, stopped"),
      ...processOptions,
    },
    notes: [
      "Set LATENTKIT_STORE instead of --store to keep the password off the command line.",
      "SIGTERM or Ctrl-C lets running runs finish and gives up those that do not; a second one stops immediately.",
    ],
    examples: ["--config latentkit.yaml --concurrency 2 --port 9090"],
  },
  nodes: {
    summary: "List the nodes, or describe one.",
    operands: { KEY: optionalOperand("the node to describe", "all are listed") },
    options: { json: flag("in the format of ComfyUI's /object_info") },
    examples: ["'ext latentNoisy'"],
  },
  models: {
    summary: "List your model files: family, size, types and hash.",
    operands: {},
    options: {
      ...modelOptions,
      config,
      "no-hash": flag("do not hash the files; hashes of earlier listings are kept in the user's cache folder"),
      json: flag("print one JSON object"),
    },
    notes: [
      "The columns: folder and name, family, size, types of values, number of values, AutoV2 hash as Civitai shows it.",
    ],
  },
  schema: {
    summary: "Print the values that a graph takes, as a JSON Schema.",
    operands: { GRAPH },
    options: {
      named: flag("only placeholders and titled primitives: what a hook message may set"),
      input,
      ...modelOptions,
      alias,
    },
    notes: ["Every property is a key of --set."],
  },
  validate: {
    summary: "Check a graph without running it.",
    operands: { GRAPH },
    options: {
      targets,
      input,
      ...modelOptions,
      alias,
      partial: flag("accept outputs that cannot be computed, as render --partial does"),
      offline,
      json: flag("print one JSON object, in the format of ComfyUI's response"),
    },
  },
  convert: {
    summary: "Write a graph in API format.",
    operands: { GRAPH, "FILE.json": optionalOperand("the file to write", "the graph is printed") },
    options: { alias },
    examples: ["workflow.json graph.json"],
  },
  inspect: {
    summary: "Show what pictures were made with, and the graph in them.",
    operands: { IMAGE },
    options: {
      graph: flag("also the receipt in full, the graph and all other texts"),
      json: flag("print one JSON object per line for each picture, with all of it"),
    },
    notes: ["Shown are prompt, seed, sampler, steps, model and size, and the settings of A1111's pictures."],
  },
  verify: {
    summary: "Render pictures again from their graphs and compare pixels.",
    operands: { IMAGE },
    options: {
      input: text("DIR", "folder of the input images", { absent: "./input" }),
      ...networkOptions,
      device,
      offline: flag("has no effect: verify never uses the network"),
      alias,
      json: flag("print one JSON object per line for each picture; of several, the counts last"),
    },
    notes: [
      "PNG files, and WebP and AVIF files saved with --lossless, can be verified.",
      "Pictures rendered with models need --models. Their pixels may be equal or close: at most 4 of 255 off.",
      "Exit code 0: all verified, 1: one differs, 2: none differs, but at least one cannot be verified (no receipt, no renderable graph, or unreadable).",
    ],
    isReadToEnd: true,
  },
  test: {
    summary: "Render the graphs of a folder and compare with snapshots.",
    operands: { DIR: operandOr(".", "a folder of graphs, or one graph") },
    options: {
      update: flag("write the snapshots of graphs that differ, and remove those without a graph"),
      set: pairs("KEY=VALUE", "a value for the graphs that have the key", { elsewhere: SET_KEYS }),
      tolerance: wholeNumber("N", "accept pixels that are up to N of 255 off", { min: 0, max: 255, absent: "0" }),
      input,
      ...networkOptions,
      device,
      alias,
      json: flag("print one JSON object per graph"),
    },
    notes: [
      "Snapshots lie in __snapshots__ beside the graphs, pictures of differences in __differences__. A missing snapshot is written, but with CI=true in the environment it is a failure.",
      "Exit code 0: all equal or written, 1: a graph differs, fails or has no snapshot, 2: bad usage.",
    ],
    isReadToEnd: true,
  },
  doctor: {
    summary: "Check this installation: CPU, GPU, ONNX Runtime, folders.",
    operands: {},
    options: {
      out: textOr("./out", "DIR", "the output folder to check"),
      ...modelOptions,
      reproducible: flag("only compare this machine's results with recorded hashes"),
      json: flag("print one JSON object"),
    },
  },
} as const satisfies Readonly<Record<string, Command>>;

export type CommandName = keyof typeof COMMANDS;

/** Values of the operands and options of the command of this name. */
export type ValuesOfCommand<Name extends CommandName> = ValuesOf<(typeof COMMANDS)[Name]["operands"]> &
  ValuesOf<(typeof COMMANDS)[Name]["options"]>;

/**
 * Runs a command and returns the exit code. `signal` aborts at the first Ctrl-C, `urgent()` at the second; a command that
 * never calls `urgent` ends there.
 */
export type Run<Name extends CommandName> = (
  args: ArgumentsOf<Name>,
  terminal: Terminal,
  signal: AbortSignal,
  urgent: () => AbortSignal,
) => Promise<number>;

export type ArgumentsOf<Name extends CommandName> = Arguments<ValuesOfCommand<Name>>;
