import type { Terminal } from "../terminal.js";
import type { Arguments } from "./arguments.js";
import type { Command } from "./command.js";
import {
  flag,
  operand,
  operandOr,
  operands,
  optionalOperand,
  pairs,
  text,
  textOr,
  type ValuesOf,
  wholeNumber,
} from "./option.js";
import { renderOptions } from "./render-options.js";
import { alias, config, device, input, modelOptions, networkOptions, offline, targets } from "./shared-options.js";

const GRAPH = operand("a graph in API format, a workflow as the editor saves it, or a picture that carries either");
const IMAGE = operands("pictures, or folders whose pictures are meant, with those of the folders below");
const PORT = { min: 0, max: 65535 };
/** Options of processes that serve or work until they are stopped. */
const processOptions = {
  ...networkOptions,
  device,
  offline,
  quiet: flag("print no messages; logs still go to stderr"),
};

// decision 182
/** All commands by their names. The code of each is in ../commands, and loaded when it runs. */
export const COMMANDS = {
  init: {
    summary: "Copy the example graphs into a folder.",
    operands: { FOLDER: operandOr("examples", "the folder; a file that exists is never replaced") },
    options: { quiet: flag("do not say what to do next") },
  },
  render: {
    summary: "Render a graph, once or many times, and print the files it writes.",
    operands: { GRAPH },
    options: renderOptions,
    notes: ["Ctrl-C lets the running items of a batch end, a second one stops at once."],
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
        absent: "127.0.0.1",
      }),
      port: wholeNumber("PORT", "port to listen on, 0 for any free one", { ...PORT, absent: "8188" }),
      store: text("URL", "where runs are kept: memory:, sqlite:FILE or postgres://…", {
        absent: "sqlite:./latentkit.db",
      }),
      "no-render": flag("leave runs to the processes of latentkit worker; needs a PostgreSQL store"),
      graph: pairs("NAME=FILE", "a graph that requests choose by its name, the first if they name none", {
        isOnce: true,
      }),
      open: flag("open the service's page in a browser, with a hook token for this start if none is set"),
      json: flag("print one event per line on stdout: listening, stopped"),
      ...processOptions,
    },
    notes: [
      "LATENTKIT_CHANNELS_WEB_HOOKS_TOKEN sets the hook token.",
      "SIGTERM or Ctrl-C lets running runs end, a second one stops at once. SIGHUP reads the graphs again.",
    ],
    examples: ["--graph portrait=portrait.json --open", "--config latentkit.yaml --host 0.0.0.0"],
    reloads: true,
  },
  worker: {
    summary: "Claim runs from a PostgreSQL store and render them.",
    operands: {},
    options: {
      config,
      store: text("URL", "postgres://USER:PASSWORD@HOST/DATABASE, that of the front ends"),
      concurrency: wholeNumber("N", "runs at the same time", { min: 1, max: 9999, absent: "4" }),
      port: wholeNumber("PORT", "port for /health, /ready and /metrics, 0 for any free one", {
        ...PORT,
        absent: "the worker listens nowhere",
      }),
      host: text("ADDRESS", "address of that port", { absent: "127.0.0.1" }),
      json: flag("print one event per line on stdout: working, stopped"),
      ...processOptions,
    },
    notes: [
      "LATENTKIT_STORE sets the store where others can see the command line.",
      "SIGTERM or Ctrl-C lets running runs end and gives up those that do not, a second one stops at once.",
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
    summary: "List your model files: what each is, its size, types and hash.",
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
      named: flag("placeholders and titled primitives alone: what a message of a hook may hold"),
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
    summary: "Show what pictures were made with: prompt, seed, sampler, steps, model, size; also the graph in them.",
    operands: { IMAGE },
    options: {
      graph: flag("also the receipt in full, the graph and all other texts"),
      json: flag("print one JSON object per line for each picture, with all of it"),
    },
  },
  verify: {
    summary: "Render pictures again from the graphs in them and compare the pixels.",
    operands: { IMAGE },
    options: {
      input: text("DIR", "folder of the input images", { absent: "./input" }),
      ...networkOptions,
      device,
      offline: flag("accepted, without effect: verify never uses the network"),
      alias,
      json: flag("print one JSON object per line for each picture; of several, the counts last"),
    },
    notes: [
      "PNG files, and WebP and AVIF files saved with --lossless, can be verified.",
      "A picture that models painted takes --models. Its pixels may be equal or close: at most 4 of 255 off.",
      "Exit code 0: all verified, 1: one is different, 2: none is different, but one has no receipt, holds no graph that can be rendered again, or cannot be read.",
    ],
    isReadToEnd: true,
  },
  test: {
    summary: "Render the graphs of a folder and compare their pixels with snapshots.",
    operands: { DIR: operandOr(".", "a folder of graphs, or one graph") },
    options: {
      update: flag("write the snapshots of graphs that differ, and remove those without a graph"),
      set: pairs("KEY=VALUE", "a value for the graphs that have the key"),
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
    summary: "Check this installation: native core, CPU, GPU, noise numbers, ONNX Runtime, output folder.",
    operands: {},
    options: {
      out: textOr("./out", "DIR", "the output folder to check"),
      ...modelOptions,
      reproducible: flag("instead: compare what this machine computes with recorded hashes"),
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
