import { LatentkitError } from "../../base/errors.js";
import type { ListedModel, ListProgress } from "../../host/checkpoint/reports/list-models.js";
import { printJson } from "../../io/json/print.js";
import { loadConfig } from "../../render/config/load-config.js";
import { modelsOf } from "../host.js";
import type { Run } from "../table/commands.js";
import { EMPTY_LINE, oneLine, type Terminal } from "../terminal.js";

export const run: Run<"models"> = async (args, terminal, signal) => {
  const { models } = loadConfig({
    file: args.get("config"),
    flags: { models: modelsOf(args) },
    env: terminal.env,
  });
  if (models.length === 0)
    throw new LatentkitError(
      "usage.invalid",
      "models: no folder given; use --models DIR, or `models` in a configuration.",
    );
  const { listModels } = await import("../../host/checkpoint/reports/list-models.js");
  const onProgress = (progress: ListProgress) => showProgress(progress, terminal);
  const listed = await listModels({ models, hashes: !args.get("no-hash"), onProgress, signal });
  if (terminal.isTerminal) terminal.err(EMPTY_LINE);
  if (args.get("json")) terminal.out(`${printJson({ models: listed })}\n`);
  else printTable(listed, terminal);
  return 0;
};

function showProgress({ done, total, name }: ListProgress, { isTerminal, columns, err }: Terminal): void {
  if (isTerminal) err(EMPTY_LINE + oneLine(`${done}/${total} ${name}`).slice(0, Math.max(0, columns - 1)));
}

function printTable(models: readonly ListedModel[], terminal: Terminal): void {
  const rows = models.map((model) => [`${model.kind}/${oneLine(model.name)}`, ...factsOf(model)]);
  // a refusal is a sentence, which makes no column wider
  const widths = [0, 1, 2, 3, 4].map((column) =>
    Math.max(0, ...rows.map((row) => (column === 0 || row.length > 2 ? row[column]!.length : 0))),
  );
  for (const row of rows) {
    terminal.out(
      `${row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd()}\n`,
    );
  }
  const refused = models.filter(({ refusal }) => refusal !== undefined).length;
  const files = `${models.length} ${models.length === 1 ? "file" : "files"}`;
  terminal.err(refused === 0 ? `${files}\n` : `${files}, ${refused} of which cannot be loaded\n`);
}

function factsOf({ family, refusal, bytes, dtypes, parameters = 0, autoV2 = "" }: ListedModel): string[] {
  if (family === undefined) return [oneLine(refusal ?? "")];
  return [family, inUnits(bytes, BYTE_UNITS), dtypes.join(" "), inUnits(parameters, COUNT_UNITS), autoV2];
}

const BYTE_UNITS = ["B", "kB", "MB", "GB", "TB"] as const;
const COUNT_UNITS = ["", "K", "M", "G", "T"] as const;

/** A number with three digits and the unit of its thousand: "2.13 GB". */
function inUnits(value: number, units: readonly string[]): string {
  let [scaled, power] = [value, 0];
  while (Number(scaled.toPrecision(3)) >= 1000 && power + 1 < units.length) {
    scaled /= 1000;
    power++;
  }
  return `${power === 0 ? value : scaled.toPrecision(3)} ${units[power]}`.trimEnd();
}
