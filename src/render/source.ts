import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { LatentkitError } from "../base/errors.js";
import { freezeJson, parseJson } from "../io/json/lossless.js";

/** Far above any graph; an image passed by mistake is refused before it is read. */
const MAX_GRAPH_BYTES = 64 * 1024 * 1024;

/** A graph as JSON text or as an object, with the folder that its images are read from. */
export interface GraphSource {
  readonly graph: string | object;
  readonly inputDir: string;
}

/**
 * Reads a graph that is an object, JSON text (it starts with "{") or a path. The folder for input images is
 * `input` beside the graph's file where that exists, else ./input. Fails with file.not-found, file.read-failed and
 * graph.invalid-json, which name the file.
 */
export function readGraph(source: string | object): GraphSource {
  const here = resolve("input");
  if (typeof source !== "string") return { graph: source, inputDir: here };
  if (/^\ufeff?\s*\{/.test(source)) return { graph: withoutMark(source), inputDir: here };
  const beside = join(dirname(resolve(source)), "input");
  const graph = parseJson(withoutMark(readText(source)), { what: `Graph ${source}` });
  if (typeof graph !== "object" || graph === null) {
    throw new LatentkitError("graph.invalid", `Graph ${source}: expected an object of nodes by id.`);
  }
  return { graph, inputDir: existsSync(beside) ? beside : here };
}

/** Freezes the nodes of a graph: what runs find out about them they find out once. */
export function frozenGraph<Graph extends object>(graph: Graph): Graph {
  for (const node of Object.values(graph)) freezeJson(node);
  return graph;
}

/** Editors on Windows put a byte-order mark before JSON. */
const withoutMark = (text: string) => text.replace(/^\ufeff/, "");

function readText(path: string): string {
  try {
    if (statSync(path).size > MAX_GRAPH_BYTES) {
      throw new LatentkitError("graph.invalid", `Graph ${path}: expected a JSON file of at most 64 MiB.`);
    }
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof LatentkitError) throw error;
    const code = (error as NodeJS.ErrnoException).code ?? "unreadable";
    if (code === "ENOENT")
      throw new LatentkitError("file.not-found", `Graph ${path} does not exist.`, {}, { cause: error });
    throw new LatentkitError("file.read-failed", `Graph ${path} cannot be read (${code}).`, {}, { cause: error });
  }
}
