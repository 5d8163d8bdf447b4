import { closeSync, existsSync, fstatSync, openSync, readFileSync, readSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { LatentkitError } from "../base/errors.js";
import { freezeJson, isPlainObject, parseJson } from "../io/json/lossless.js";
import { HEAD_BYTES, pictureKind } from "../io/pictures/kind.js";
import { pictureTexts } from "../io/pictures/texts.js";
import { apiGraph, type ConvertOptions } from "./convert-workflow.js";

/** Far above any graph; a file passed by mistake is refused before it is read. */
const MAX_GRAPH_MIB = 64;
const MAX_PICTURE_MIB = 1024;

/** A graph in API format as JSON text or as an object, with the folder that its images are read from. */
export interface GraphSource {
  readonly graph: string | object;
  readonly inputDir: string;
  /** The graph as the editor saves it, where that is what was read or stands beside it in a picture. */
  readonly workflow?: object;
}

/**
 * Reads a graph that is an object, JSON text (it starts with "{"), the bytes of a file or its path. The file is JSON in
 * API format or as the editor saves it, or a picture that carries either. The folder for input images is `input` beside
 * the graph's file where that exists, else ./input. Fails with file.not-found, file.read-failed, graph.invalid-json and
 * graph.invalid, which name the file.
 */
export function readGraph(source: string | object, options: ConvertOptions = {}): GraphSource {
  const here = resolve("input");
  if (source instanceof Uint8Array) return { ...readBytes(source, "the bytes", options), inputDir: here };
  if (typeof source !== "string") return { ...inApiFormat(source, options), inputDir: here };
  if (/^\ufeff?\s*\{/.test(source)) return { ...readText(withoutMark(source), options), inputDir: here };
  const beside = join(dirname(resolve(source)), "input");
  const read = readBytes(readFile(source), source, options);
  return { ...read, inputDir: mayExist(beside) ? beside : here };
}

/** Whether a path exists; true where node's permission model denies the answer, so that reading it says which flag is missing. */
function mayExist(path: string): boolean {
  try {
    return existsSync(path);
  } catch {
    return true;
  }
}

/** Freezes the nodes of a graph: what runs find out about them they find out once. */
export function frozenGraph<Graph extends object>(graph: Graph): Graph {
  for (const node of Object.values(graph)) freezeJson(node);
  return graph;
}

type Read = Omit<GraphSource, "inputDir">;

function inApiFormat(graph: object, options: ConvertOptions): Read {
  const converted = apiGraph(graph, options);
  return converted === graph ? { graph } : { graph: converted, workflow: graph };
}

/** Text in API format is parsed by who validates it, once. */
function readText(text: string, options: ConvertOptions): Read {
  const isWorkflow = text.includes('"nodes"') && text.includes('"links"');
  const graph = isWorkflow ? parseJson(text, { what: "Graph" }) : text;
  return typeof graph === "object" && graph !== null ? inApiFormat(graph, options) : { graph: text };
}

function readBytes(bytes: Uint8Array, name: string, options: ConvertOptions): Read {
  if (pictureKind(bytes) !== undefined) return readPicture(bytes, name, options);
  const graph = parseJson(withoutMark(Buffer.from(bytes).toString("utf8")), { what: `Graph ${name}` });
  if (typeof graph !== "object" || graph === null) {
    throw new LatentkitError("graph.invalid", `Graph ${name}: expected an object of nodes by id.`);
  }
  return inApiFormat(graph, options);
}

/** Reads the graph that a picture carries: as it ran, else as the editor saved it. */
function readPicture(bytes: Uint8Array, name: string, options: ConvertOptions): Read {
  const texts = pictureTexts(bytes);
  const workflow = jsonObject(texts.workflow);
  const prompt = jsonObject(texts.prompt);
  if (prompt !== undefined) return { workflow, ...inApiFormat(prompt, options) };
  if (workflow !== undefined) return inApiFormat(workflow, options);
  const keys = Object.keys(texts).slice(0, 10);
  const received = keys.length === 0 ? "no text" : `${keys.map((key) => JSON.stringify(key.slice(0, 80))).join(", ")}`;
  const hint = keys.includes("parameters") ? " Its parameters are a line for people, not a graph." : "";
  throw new LatentkitError(
    "graph.invalid",
    `Graph ${name}: expected a picture with a graph in its text "prompt" or "workflow", received one with ${received}.${hint}`,
  );
}

/** Parses a text of a picture; Python writes NaN into some. */
function jsonObject(text: string | undefined): object | undefined {
  if (text === undefined) return undefined;
  try {
    const value = parseJson(text, { nonFinite: true });
    return isPlainObject(value) ? value : undefined;
  } catch (error) {
    if (error instanceof LatentkitError) return undefined;
    throw error;
  }
}

/** Editors on Windows put a byte-order mark before JSON. */
const withoutMark = (text: string) => text.replace(/^\ufeff/, "");

function readFile(path: string): Uint8Array {
  let file: number | undefined;
  try {
    file = openSync(path, "r");
    const head = Buffer.alloc(HEAD_BYTES);
    const isPicture = pictureKind(head.subarray(0, readSync(file, head, 0, HEAD_BYTES, 0))) !== undefined;
    const [kind, mib] = isPicture ? ["picture", MAX_PICTURE_MIB] : ["JSON file", MAX_GRAPH_MIB];
    if (fstatSync(file).size > mib * 2 ** 20) {
      throw new LatentkitError("graph.invalid", `Graph ${path}: expected a ${kind} of at most ${mib} MiB.`);
    }
    return readFileSync(file);
  } catch (error) {
    if (error instanceof LatentkitError) throw error;
    const code = (error as NodeJS.ErrnoException).code ?? "unreadable";
    if (code === "ENOENT")
      throw new LatentkitError("file.not-found", `Graph ${path} does not exist.`, {}, { cause: error });
    if (code === "EISDIR")
      throw new LatentkitError(
        "graph.invalid",
        `Graph ${path}: expected a file, received a folder.`,
        {},
        { cause: error },
      );
    throw new LatentkitError("file.read-failed", `Graph ${path} cannot be read (${code}).`, {}, { cause: error });
  } finally {
    if (file !== undefined) closeSync(file);
  }
}
