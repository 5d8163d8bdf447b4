import { printJsonPretty } from "../../io/json/print.js";
import { exactSchema } from "../../render/schema/graph-schema.js";
import { openHost } from "../host.js";
import type { Run } from "../table/commands.js";
import { harmless } from "../terminal.js";

export const run: Run<"schema"> = async (args, terminal) => {
  const schema = exactSchema(args.get("GRAPH"), {
    host: await openHost({ folders: args.get("models") }, terminal),
    inputDir: args.get("input"),
    classAliases: args.get("alias"),
    named: args.get("named"),
  });
  terminal.out(harmless(`${printJsonPretty(schema)}\n`));
  return 0;
};
