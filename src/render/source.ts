import { closeSync, existsSync, fstatSync, readFileSync, readSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { isDetached } from "../base/bytes.js";
import { describe, LatentkitError } from "../base/errors.js";
import { checkOptions, FUNCTION, isObject, type OptionRules, REGISTRY, type Rule, VALUES } from "../base/options.js";
import { aliasesOf, type ClassAliases, findDefinition, refuseNonFinite, withNotes } from "../graph/parse.js";
import { type ApiNode, toApiGraph } from "../graph/workflow/convert.js";
import { isEditorFile, unwrapGraph } from "../graph/wrappers.js";
import { otherFormat, START_BYTES } from "../host/checkpoint/files/other-format.js";
import { freezeJson, isPlainObject, parseJson } from "../io/json/lossless.js";
import { pictureTexts } from "../io/pictures/decode.js";
import { HEAD_BYTES, pictureKind } from "../io/pictures/format.js";
import { decodeText, openRegularSync } from "../io/regular-file.js";
import { registry as builtIns } from "../nodes/index.js";
import type { Registry } from "../nodes/registry.js";

/** Far above any graph; a file passed by mistake is refused before it is read. */
const MAX_GRAPH_MIB = 64;
const MAX_PICTURE_MIB = 1024;

/** Rule of an option that `readGraph` reads. */
export const GRAPH: Rule = [
  "an object, JSON text, or the path, URL or bytes of a file",
  (value) => typeof value === "string" || isObject(value),
];

/** A graph in API format as JSON text or as an object, with the folder that its images are read from. */
export interface GraphSource {
  readonly graph: string | object;
  readonly inputDir: string;
  /** The graph as the editor saves it, if that was read or stands beside it in a picture. */
  readonly workflow?: object;
  /** Name of the file that was read, without its folder. */
  readonly name?: string;
}

/**
 * Reads a graph that is an object, JSON text (it starts with "{"), the bytes of a file, its path or its file: URL. The file
 * is JSON in UTF-8 or UTF-16, in API format or as the editor saves it, or a picture that carries either. The folder for
 * input images is `input` beside the graph's file if that exists, else ./input. Fails with file.not-found,
 * file.read-failed, graph.invalid-json and graph.invalid, which name the file.
 */
export function readGraph(source: string | object, options: ReadOptions = {}): GraphSource {
  const here = resolve("input");
  const bytes = bytesOf(source);
  if (bytes !== undefined) return { ...readBytes(bytes, "(bytes)", options), inputDir: here };
  if (source instanceof URL) return readPath(pathOf(source), options);
  if (typeof source !== "string") return { ...inApiFormat(source, options), inputDir: here };
  if (/^\ufeff?\s*\{/.test(source)) return { ...readText(withoutMark(source), options), inputDir: here };
  return readPath(ADDRESS.test(source) ? pathOf(source) : source, options);
}

/** Texts that are addresses: a path has at most one letter before a colon. */
const ADDRESS = /^[a-z][a-z\d+.-]+:\/\//i;

/** Bytes of a file; undefined for anything else. Throws graph.invalid if their memory was moved to another thread. */
export function bytesOf(source: unknown): Uint8Array | undefined {
  if (!(source instanceof ArrayBuffer || source instanceof Uint8Array)) return undefined;
  if (!isDetached(source instanceof ArrayBuffer ? source : source.buffer)) {
    return source instanceof ArrayBuffer ? new Uint8Array(source) : source;
  }
  throw new LatentkitError(
    "graph.invalid",
    "Graph: expected bytes, received those whose memory was moved to another thread.",
  );
}

/** A graph that is an object or JSON text in API format, an object as the editor saves it, or what is read from a file. */
export const readPrompt = (prompt: unknown, options: ReadOptions): unknown =>
  bytesOf(prompt) !== undefined || prompt instanceof URL
    ? readGraph(prompt as object, options).graph
    : apiGraph(prompt, options);

/** Path of a file: URL. Throws graph.invalid for any other, whose address may hold a secret. */
export function pathOf(url: URL | string): string {
  const address = String(url);
  const protocol = address.slice(0, address.indexOf(":") + 1).toLowerCase();
  if (protocol !== "file:") {
    const message = `Graph: expected a file: URL, received one that begins with ${protocol}; download the graph and pass its bytes.`;
    throw new LatentkitError("graph.invalid", message);
  }
  try {
    return fileURLToPath(url);
  } catch (error) {
    const message = `Graph ${address}: expected the URL of a file on this machine (pathToFileURL makes one).`;
    throw new LatentkitError("graph.invalid", message, {}, { cause: error });
  }
}

function readPath(path: string, options: ReadOptions): GraphSource {
  const beside = join(dirname(resolve(path)), "input");
  const read = readBytes(readFile(path), path, options);
  return { ...read, inputDir: mayExist(beside) ? beside : resolve("input"), name: basename(path) };
}

/** Whether a path exists; true if node's permission model denies the answer, so that reading it says which flag is missing. */
function mayExist(path: string): boolean {
  try {
    return existsSync(path);
  } catch {
    return true;
  }
}

/** Freezes the nodes of a graph, so that runs compute facts about them once. */
export function frozenGraph<Graph extends object>(graph: Graph): Graph {
  for (const node of Object.values(graph)) freezeJson(node);
  return graph;
}

type Read = Omit<GraphSource, "inputDir">;

function inApiFormat(graph: object, options: ReadOptions): Read {
  const converted = apiGraph(graph, options);
  if (isPlainObject(converted)) refuseNonFinite(unwrapGraph(converted));
  return converted === graph ? { graph } : { graph: converted, workflow: graph };
}

/** Text in API format is parsed once, by the validation. */
function readText(text: string, options: ReadOptions): Read {
  const isWorkflow = text.includes('"nodes"') && text.includes('"links"');
  const graph = isWorkflow ? parseJson(text, { what: "Graph", nonFinite: true }) : text;
  return typeof graph === "object" && graph !== null ? inApiFormat(graph, options) : { graph: text };
}

/** Formats that may be JSON. */
const IS_TEXT = /^(?:text: |JSON, )/;

function readBytes(bytes: Uint8Array, name: string, options: ReadOptions): Read {
  if (pictureKind(bytes) !== undefined) return readPicture(bytes, name, options);
  const format = otherFormat(bytes.subarray(0, START_BYTES));
  if (format !== undefined && !IS_TEXT.test(format))
    throw new LatentkitError("graph.invalid-json", `Graph ${name}: expected JSON or a picture, received ${format}.`);
  const text = decodeText(bytes);
  if (text === undefined) {
    throw new LatentkitError(
      "graph.invalid-json",
      `Graph ${name}: expected text in UTF-8 or UTF-16, received other bytes.`,
    );
  }
  const graph = parseJson(text, { what: `Graph ${name}`, nonFinite: true });
  if (typeof graph !== "object" || graph === null) {
    throw new LatentkitError("graph.invalid", `Graph ${name}: expected an object of nodes by id.`);
  }
  return inApiFormat(graph, options);
}

/** Reads the graph that a picture carries: as it ran, else as the editor saved it. */
function readPicture(bytes: Uint8Array, name: string, options: ReadOptions): Read {
  const texts = textsOf(bytes, name);
  const workflow = jsonObject(texts.workflow);
  const prompt = jsonObject(texts.prompt);
  if (prompt !== undefined) return { workflow, ...inApiFormat(prompt, options) };
  if (workflow !== undefined) return inApiFormat(workflow, options);
  const spoilt = ["prompt", "workflow"].find((key) => Object.hasOwn(texts, key));
  if (spoilt !== undefined)
    throw new LatentkitError("graph.invalid", `Graph ${name}: the picture's text "${spoilt}" is not a graph.`);
  const keys = Object.keys(texts).slice(0, 10);
  const received = keys.length === 0 ? "no text" : `${keys.map((key) => JSON.stringify(key.slice(0, 80))).join(", ")}`;
  const hint = keys.includes("parameters") ? " Its parameters text is not a graph." : "";
  throw new LatentkitError(
    "graph.invalid",
    `Graph ${name}: expected a picture with a graph in its text "prompt" or "workflow", received one with ${received}.${hint}`,
  );
}

function textsOf(bytes: Uint8Array, name: string): Record<string, string> {
  try {
    return pictureTexts(bytes);
  } catch (error) {
    if (!(error instanceof LatentkitError)) throw error;
    throw new LatentkitError(error.code, `Graph ${name}: ${error.message}`, error.details, { cause: error });
  }
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

/** Texts that are not paths of a file: blank ones, web pages, and JSON that is not an object. */
const NO_PATH = /^(?:".*"|\[.*\]|<.*|null|true|false|-?\d[\d.eE+-]*|)$/s;

function readFile(path: string): Uint8Array {
  let file: number | undefined;
  try {
    file = openRegularSync(path);
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
    if (NO_PATH.test(path.trim()) || code === "ENAMETOOLONG" || code === "ERR_INVALID_ARG_VALUE") {
      const message = `Graph: expected JSON text that begins with { or the path of a file, received ${describe(path)}.`;
      throw new LatentkitError("graph.invalid", message, {}, { cause: error });
    }
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

/** Options of `convertWorkflow`. */
export interface ConvertOptions {
  /** Node classes, whose inputs tell which value belongs to which input. All nodes if absent. */
  readonly registry?: Registry;
  /** Other names of node classes: prefix to prefix, or whole key to whole key. */
  readonly classAliases?: ClassAliases;
  /** Time that %date:…% in a prefix of file names stands for. */
  readonly clock?: () => Date;
  /** Receives a sentence about each node that is left out, or whose prefix names nothing; for the latter with its id. */
  readonly onWarning?: (message: string, nodeId?: string) => void;
}

/** Options of reading a graph. */
interface ReadOptions extends ConvertOptions {
  /** Nodes to compute: of a node that they do not need, the file need not name the widgets. */
  readonly targets?: readonly string[];
}

const RULES: OptionRules<ConvertOptions> = {
  registry: REGISTRY,
  classAliases: VALUES,
  clock: FUNCTION,
  onWarning: FUNCTION,
};

/**
 * Converts a workflow as the editor saves it, an object or JSON text, to a graph in API format, as the editor does when
 * it queues one; returns a graph that is in API format already as it is. `printGraphText` writes it with every digit;
 * JSON.stringify throws for whole numbers beyond 2^53, which are bigints. Throws graph.invalid, which names node, type and
 * reason, graph.unknown-class, which names all classes, and graph.invalid-json.
 */
export function convertWorkflow(workflow: string | object, options: ConvertOptions = {}): Record<string, unknown> {
  checkOptions("convertWorkflow", options, RULES);
  const object = typeof workflow === "string" ? parseJson(workflow, { what: "Workflow", nonFinite: true }) : workflow;
  if (isPlainObject(object)) {
    const graph = unwrapGraph(apiGraph(object, options));
    refuseNonFinite(graph);
    return graph;
  }
  throw new LatentkitError("graph.invalid", `Workflow: expected an object, received ${describe(object)}.`);
}

/** A workflow of the editor in API format, anything else as it is: parsing it as a graph reports what is wrong. */
export function apiGraph<Graph>(graph: Graph, options: ReadOptions = {}): Graph | Record<string, ApiNode> {
  if (!isPlainObject(graph)) return graph;
  const workflow = unwrapGraph(graph);
  if (!isEditorFile(workflow)) return graph;
  const { registry = builtIns, classAliases = {}, clock, targets, onWarning } = options;
  const aliases = { classOf: aliasesOf(classAliases) };
  const notes: string[] = [];
  const converted = toApiGraph(workflow, {
    classes: (type) => findDefinition(aliases, type, registry),
    registry,
    now: clock?.() ?? new Date(),
    targets,
    onWarning: (message, nodeId) => {
      // warnings of nodes in the graph are found again when it runs
      if (nodeId === undefined) notes.push(message);
      onWarning?.(message, nodeId);
    },
  });
  return withNotes(converted, notes);
}
