import { flag, pairs, text, texts, wholeNumber } from "./option.js";
import { alias, config, device, input, networkOptions, offline, targets } from "./shared-options.js";

/** An argument that is neither an option nor a graph is the picture's name. */
const PICTURE = /^(?!-)(?!.*\.json$)./is;

/** Options of `render` that make a batch of it. */
export const batchOptions = {
  seeds: text("SEEDS", "0..999, 1,2,10..20 or random:50, for every seed that --set does not set", {
    above: "Many times, each with other values; any of these makes a batch:",
  }),
  items: text(
    "ITEMS",
    "a file with one item per line, .csv with keys in its first row or .jsonl with an object per line, - for either from standard input; or pictures for {{image}} or the one image input, a folder or 'photos/**/*.png' in quotes",
  ),
  sweep: texts("KEY=VALUES", "3.steps=10,20,30 or 5.seed=0..3 or a JSON list; several make every combination"),
  check: flag("only check the items, and tell how many files they make and their first names"),
  limit: wholeNumber("N", "the first N items only", { min: 1 }),
  name: text("TEMPLATE", "file names, such as {prefix}_{5.seed}_{number}, also with columns of the items"),
  "extra-columns": flag("ignore columns that fit nothing in the graph"),
  concurrency: wholeNumber("N", "items that render at once", { min: 1, absent: "one for each processor" }),
  retry: wholeNumber("N", "further tries of an item whose run fails", { min: 0, absent: "0" }),
  "fail-fast": flag("start no further item once one has failed"),
  resume: flag("go on with a batch that was cut: what is finished is skipped"),
  journal: text("FILE", "what --resume goes on from", { absent: "GRAPH.journal.jsonl in the output folder" }),
  cache: text("DIR", "keep results of nodes on disk, for other batches and processes"),
  "contact-sheet": text("FILE.png", "the pictures in a grid", {
    absent: "contact-sheet.png in the output folder",
    bare: PICTURE,
  }),
  grid: text("FILE.png", "sweeps as labelled rows, columns and pages", {
    absent: "grid.png in the output folder",
    bare: PICTURE,
    excludes: { options: ["items"], because: "a grid shows sweeps and seeds alone" },
  }),
  store: text("URL", "render in the workers of this PostgreSQL store", {
    absent: "that of the configuration",
    bare: /^[a-z]{2,}:/i,
    excludes: {
      options: ["cache", "device", "models", "models-device", "models-memory"],
      because: "each worker uses its own",
    },
  }),
};

export const renderOptions = {
  set: pairs(
    "KEY=VALUE",
    "6.text=… sets an input of node 6, any other key fills {{key}}; prompt, negative, seed, steps, width and height are the one input of that name; 5.seed=random draws a seed",
  ),
  targets,
  out: text("DIR", "folder for the files", { absent: "./out" }),
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
  ...batchOptions,
};
