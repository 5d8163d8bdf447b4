import { basename, dirname } from "node:path";
import { parseGraph } from "../../graph/parse.js";
import { writeReplacing } from "../../io/files/write-file.js";
import { printJsonPretty } from "../../io/json/print.js";
import { readGraph } from "../../render/source.js";
import type { Run } from "../table/commands.js";
import { harmless, shortest } from "../terminal.js";

export const run: Run<"convert"> = async (args, terminal) => {
  const [path, target] = [args.get("GRAPH"), args.get("FILE.json")];
  const classAliases = args.get("alias");
  const onWarning = (message: string) => terminal.err(`Warning: ${harmless(message)}\n`);
  const { prompt } = parseGraph(readGraph(path, { classAliases, onWarning }).graph, { classAliases });
  const text = `${printJsonPretty(prompt)}\n`;
  if (target === undefined) terminal.out(harmless(text));
  else {
    await writeReplacing(dirname(target), basename(target), Buffer.from(text));
    terminal.out(`${shortest(target)}\n`);
  }
  return 0;
};
