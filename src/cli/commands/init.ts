import { constants, cpSync, existsSync, readdirSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { LatentkitError } from "../../base/errors.js";
import type { Run } from "../table/commands.js";
import { shortest } from "../terminal.js";

/** Files for operators of a service; they are not examples of graphs. */
const OPERATIONS = "operations";

/** The package's own examples: graphs, a CSV file of items and the pictures that the graphs read. */
const EXAMPLES = fileURLToPath(new URL("../../../examples", import.meta.url));

export const run: Run<"init"> = async (args, terminal) => {
  const folder = args.get("FOLDER");
  const names = readdirSync(EXAMPLES, { recursive: true, encoding: "utf8", withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name).slice(EXAMPLES.length + 1))
    .filter((name) => !isOperations(name))
    .sort();
  const paths = names.map((name) => join(folder, name));
  const existing = paths.find((path) => existsSync(path));
  if (existing !== undefined) {
    const sentence = `init: ${shortest(existing)} already exists, so nothing was copied; choose another folder.`;
    throw new LatentkitError("usage.invalid", sentence);
  }
  copy(folder);
  for (const path of paths) terminal.out(`${shortest(path)}\n`);
  if (!args.get("quiet")) terminal.err(`Next: npx latentkit render ${shortest(join(folder, "first-light.json"))}\n`);
  return 0;
};

const isOperations = (name: string) => name.split(sep)[0] === OPERATIONS;

function copy(folder: string): void {
  try {
    cpSync(EXAMPLES, folder, {
      recursive: true,
      errorOnExist: true,
      force: false,
      mode: constants.COPYFILE_EXCL,
      filter: (source) => !isOperations(relative(EXAMPLES, source)),
    });
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? String(error);
    const sentence = `init: ${shortest(folder)} cannot be written (${why}).`;
    throw new LatentkitError("file.write-failed", sentence, {}, { cause: error });
  }
}
