import { printJsonPretty } from "../../io/json/print.js";
import { exactSchema } from "../../render/schema/graph-schema.js";
import { type Command, pair } from "../command.js";
import { hostOptions, modelsNamed, openHost } from "../host.js";
import { harmless } from "../terminal.js";

export const schemaCommand: Command = {
  usage: "schema GRAPH",
  summary: "Print the values that a graph takes, as a JSON Schema.",
  help: [
    "  --named          placeholders and titled primitives alone: what a message of a hook may hold",
    "  --input DIR      folder of the input images (input beside the graph, else ./input)",
    "  --models DIR     ComfyUI's models folder, or an extra_model_paths.yaml; repeatable",
    "  --alias OLD=NEW  run nodes of class OLD (or of prefix OLD) as NEW; repeatable",
    "",
    "Every property is a key of --set.",
  ],
  options: {
    named: { type: "boolean" },
    input: { type: "string" },
    ...hostOptions,
    alias: { type: "string", multiple: true },
  },
  positionals: { min: 1, max: 1 },
  run: async (args, terminal) => {
    const schema = exactSchema(args.positionals[0]!, {
      host: await openHost(modelsNamed(args, terminal), terminal),
      inputDir: args.value("input"),
      classAliases: Object.fromEntries(args.values("alias").map((text) => pair("alias", text))),
      named: args.flag("named"),
    });
    terminal.out(harmless(`${printJsonPretty(schema)}\n`));
    return 0;
  },
};
