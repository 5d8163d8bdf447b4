import { basename, dirname } from "node:path";
import { parseGraph } from "../../graph/parse.js";
import { writeReplacing } from "../../io/files/write-file.js";
import { printJsonPretty } from "../../io/json/print.js";
import { readGraph } from "../../render/source.js";
import { type Command, pair } from "../command.js";
import { shortest } from "../render-options.js";
import { harmless } from "../terminal.js";

export const convertCommand: Command = {
  usage: "convert GRAPH [FILE.json]",
  summary: "Write a graph in API format.",
  help: [
    "GRAPH is a workflow as the editor saves it, or a picture that carries a graph. Prints the graph where no file is named.",
    "",
    "  --alias OLD=NEW  read nodes of class OLD (or of prefix OLD) as NEW; repeatable",
  ],
  options: { alias: { type: "string", multiple: true } },
  positionals: { min: 1, max: 2 },
  run: async (args, terminal) => {
    const [path, target] = args.positionals as [string, string?];
    const classAliases = Object.fromEntries(args.values("alias").map((text) => pair("alias", text)));
    const onWarning = (message: string) => terminal.err(`Warning: ${harmless(message)}\n`);
    const { prompt } = parseGraph(readGraph(path, { classAliases, onWarning }).graph, { classAliases });
    const text = `${printJsonPretty(prompt)}\n`;
    if (target === undefined) terminal.out(harmless(text));
    else {
      await writeReplacing(dirname(target), basename(target), Buffer.from(text));
      terminal.out(`${shortest(target)}\n`);
    }
    return 0;
  },
};
