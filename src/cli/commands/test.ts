import { lstat, readdir, realpath, stat } from "node:fs/promises";
import { basename, dirname, extname, join } from "node:path";
import { describe, LatentkitError } from "../../base/errors.js";
import { parseGraph } from "../../graph/parse.js";
import { decodeText, isInside, readRegular } from "../../io/regular-file.js";
import { createGraphKeys } from "../../render/items/graph-keys.js";
import { renderOutputs } from "../../render/snapshot/outputs.js";
import { checkSnapshot, removeSnapshot, type SnapshotVerdict } from "../../render/snapshot/snapshot.js";
import { readGraph } from "../../render/source.js";
import { deviceOf, modelsNamed, openHost } from "../host.js";
import type { ArgumentsOf, Run } from "../table/commands.js";
import { harmless, oneLine, red, shortest, type Terminal } from "../terminal.js";

const FAILED = 1;
const SNAPSHOTS = "__snapshots__";
/** Pictures of differences. */
const DIFFERENCES = "__differences__";
/** Larger files are not graphs; the render reports that. */
const MAX_READ_BYTES = 64 * 1024 * 1024;

/** Result of one graph. */
type Status = SnapshotVerdict["status"] | "failed";

interface Outcome {
  readonly graph: string;
  readonly status: Status;
  /** A sentence or clause for each difference, or why the graph failed. */
  readonly messages: readonly string[];
  /** Pictures that show differences. */
  readonly pictures: readonly string[];
}

const WRONG: ReadonlySet<Status> = new Set(["failed", "different", "missing"]);

export const run: Run<"test"> = async (args, terminal, signal) => {
  const path = args.get("DIR");
  const { graphs, folder } = await findGraphs(path);
  const test = await createTest(args, terminal, graphs, signal);
  const counts = new Map<Status, number>();
  for (const graph of graphs) {
    const outcome = await test(graph);
    counts.set(outcome.status, (counts.get(outcome.status) ?? 0) + 1);
    print(outcome, args, terminal);
  }
  if (folder !== undefined) await refuseLinks(folder);
  const obsolete = folder === undefined ? [] : await obsoleteSnapshots(folder, graphs);
  for (const stem of obsolete) {
    if (args.get("update")) await removeSnapshot(stem);
    const what = args.get("update") ? "was removed" : "no longer has a graph; remove it with --update";
    terminal.err(`The snapshot ${shortest(`${stem}.json`)} ${what}.\n`);
  }
  const parts = Array.from(counts, ([status, count]) => `${count} ${status}`);
  if (!args.get("json")) {
    terminal.err(`${graphs.length} ${graphs.length === 1 ? "graph" : "graphs"}: ${parts.join(", ")}.\n`);
  }
  return [...counts.keys()].some((status) => WRONG.has(status)) ? FAILED : 0;
};

/** Graphs of a folder by name, or the one graph; `folder` is the folder that was searched. */
async function findGraphs(path: string): Promise<{ graphs: string[]; folder?: string }> {
  const found = await stat(path).catch((cause: unknown) => {
    throw new LatentkitError("file.not-found", `${path} does not exist.`, {}, { cause });
  });
  if (!found.isDirectory()) return { graphs: [path] };
  const names = (await readdir(path)).filter((name) => extname(name).toLowerCase() === ".json").sort();
  const graphs: string[] = [];
  for (const name of names) if (await isGraph(join(path, name))) graphs.push(join(path, name));
  if (graphs.length > 0) return { graphs, folder: path };
  throw new LatentkitError("usage.invalid", `${path}: no graphs (*.json) in this folder.`);
}

/** Whether a file is meant as a graph, even a wrong one; package.json and the like are not. */
async function isGraph(path: string): Promise<boolean> {
  if (!(await stat(path)).isFile()) return false;
  const bytes = await readRegular(path, MAX_READ_BYTES);
  if (bytes === undefined) return true;
  const text = decodeText(bytes) ?? "";
  return text.includes('"class_type"') || (text.includes('"nodes"') && text.includes('"links"'));
}

/** Makes the test of one graph. Fails with usage.invalid, before anything renders, for a key that no graph has. */
async function createTest(
  args: ArgumentsOf<"test">,
  terminal: Terminal,
  graphs: readonly string[],
  signal: AbortSignal,
): Promise<(graph: string) => Promise<Outcome>> {
  const values = Object.entries(args.get("set"));
  const classAliases = args.get("alias");
  const tolerance = args.get("tolerance");
  const valuesOf = (path: string) => {
    try {
      const keys = createGraphKeys(parseGraph(readGraph(path, { classAliases }).graph).prompt, { classAliases });
      return values.filter(([key]) => !("reason" in keys.find(key)));
    } catch {
      // the render says what is wrong with it
      return [];
    }
  };
  const known = new Set(graphs.flatMap((path) => valuesOf(path).map(([key]) => key)));
  const unknown = values.find(([key]) => !known.has(key))?.[0];
  if (unknown !== undefined) {
    throw new LatentkitError("usage.invalid", `--set: no graph has the key ${JSON.stringify(unknown)}.`);
  }
  const { CI = "" } = terminal.env;
  const isCi = CI !== "" && CI !== "0" && CI !== "false";
  const write = args.get("update") ? "all" : isCi ? "none" : "missing";
  const options = {
    inputDir: args.get("input"),
    host: await openHost(modelsNamed(args, terminal), terminal, { isQuiet: args.get("json"), signal }),
    device: deviceOf(args),
    classAliases,
    signal,
  };
  return async (graph) => {
    try {
      await refuseLinks(dirname(graph));
      const set = Object.fromEntries(valuesOf(graph));
      const { outputs, warnings } = await renderOutputs(graph, { ...options, set });
      for (const warning of warnings) terminal.err(`Warning: ${oneLine(graph)}: ${harmless(warning)}\n`);
      const { status, differences, pictures } = await checkSnapshot(stemOf(graph), outputs, { write, tolerance });
      return { graph, status, messages: differences, pictures };
    } catch (error) {
      // what stops one graph says nothing about the next; an interruption stops all
      if (signal.aborted || !(error instanceof LatentkitError)) throw error;
      return { graph, status: "failed", messages: [error.message], pictures: [] };
    }
  };
}

/**
 * Fails with path.outside if a link leads the snapshots or the pictures of differences out of the graphs' folder: they
 * would be written and removed elsewhere.
 */
async function refuseLinks(folder: string): Promise<void> {
  const root = await realpath(folder);
  for (const name of [SNAPSHOTS, DIFFERENCES]) {
    const path = join(folder, name);
    if ((await lstat(path).catch(() => undefined)) === undefined) continue;
    const real = await realpath(path).catch(() => undefined);
    if (real !== undefined && isInside(root, real)) continue;
    const message = `Snapshots: ${describe(path)} is a link that leaves ${folder}; expected a folder inside it.`;
    throw new LatentkitError("path.outside", message);
  }
}

const stemOf = (graph: string): string => join(dirname(graph), SNAPSHOTS, basename(graph, extname(graph)));

async function obsoleteSnapshots(folder: string, graphs: readonly string[]): Promise<string[]> {
  const stems = new Set(graphs.map(stemOf));
  const names = await readdir(join(folder, SNAPSHOTS)).catch(() => []);
  return names
    .filter((name) => name.endsWith(".json"))
    .map((name) => join(folder, SNAPSHOTS, name.slice(0, -".json".length)))
    .filter((stem) => !stems.has(stem))
    .sort();
}

function print({ graph, status, messages, pictures }: Outcome, args: ArgumentsOf<"test">, terminal: Terminal): void {
  if (args.get("json")) {
    terminal.out(`${JSON.stringify({ graph, status, messages, pictures })}\n`);
    return;
  }
  const word = WRONG.has(status) ? red(terminal, status) : status;
  const hints = [...messages, ...pictures.map((path) => `see ${shortest(path)}`)];
  const more =
    status === "missing" ? ["no snapshot; run latentkit test without CI=true, and commit what it writes"] : hints;
  const detail = more.length === 0 || status === "updated" ? "" : `: ${more.join("; ")}`;
  terminal.out(`${word} ${oneLine(graph)}${harmless(oneLine(detail))}\n`);
}
