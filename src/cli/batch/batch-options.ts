import type { Arguments, Command } from "../command.js";

/** Options of `render` that make a batch of it. */
export const batchOptions = {
  seeds: { type: "string" },
  items: { type: "string" },
  sweep: { type: "string", multiple: true },
  limit: { type: "string" },
  name: { type: "string" },
  "extra-columns": { type: "boolean" },
  check: { type: "boolean" },
  concurrency: { type: "string" },
  retry: { type: "string" },
  "fail-fast": { type: "boolean" },
  resume: { type: "boolean" },
  journal: { type: "string" },
  cache: { type: "string" },
  "contact-sheet": { type: "string" },
  grid: { type: "string" },
  store: { type: "string" },
} as const satisfies Command["options"];

export const batchHelp: readonly string[] = [
  "Many times, each with other values; any of these makes a batch:",
  "  --seeds SEEDS      0..999, 1,2,10..20 or random:50, for every seed that --set does not set",
  "  --items FILE       an item a line: .csv with keys in its first row, .jsonl with an object a line;",
  "                     - reads either from standard input",
  "  --items PICTURES   a folder or 'photos/**/*.png' in quotes, for {{image}} or the one image input",
  "  --sweep KEY=VALUES 3.steps=10,20,30 or 5.seed=0..3 or a JSON list; repeated, every combination",
  "  --check            only check the items, and say how many files come and their first names",
  "  --limit N          the first N items only",
  "  --name TEMPLATE    file names, such as {prefix}_{5.seed}_{number}, also with columns of the items",
  "  --extra-columns    ignore columns that fit nothing in the graph",
  "  --concurrency N    items that render at once (one for each processor)",
  "  --retry N          further tries of an item whose run fails (0)",
  "  --fail-fast        start no further item once one has failed",
  "  --resume           go on with a batch that was cut: what is finished is skipped",
  "  --journal FILE     what --resume goes on from (GRAPH.journal.jsonl in the output folder)",
  "  --cache DIR        keep results of nodes on disk, for other batches and processes",
  "  --contact-sheet [FILE.png]  the pictures in a grid (contact-sheet.png in the output folder)",
  "  --grid [FILE.png]  sweeps as labelled rows, columns and pages (grid.png in the output folder)",
  "  --store [URL]      render in the workers of this PostgreSQL store (that of the configuration)",
  "Ctrl-C lets items that run come to their end, a second one stops at once.",
];

export const isBatch = (args: Arguments): boolean => Object.keys(batchOptions).some((name) => args.has(name));
