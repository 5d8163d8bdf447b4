import { dirname, extname, join } from "node:path";
import { types } from "node:util";
import { escapeControls } from "./controls.js";
import { hintOf, suggest } from "./suggest.js";

/** The meaning of a failure to a ComfyUI client and to a shell script. */
export interface ErrorMeaning {
  /** ComfyUI's error type for the failure. */
  readonly comfyType: string;
  /** Exit code of the command line: 1 run failed, 2 bad graph or usage, 3 bad configuration, 130 interrupted. */
  readonly exit: number;
}

const badGraph = (comfyType: string): ErrorMeaning => ({ comfyType, exit: 2 });
const RUN_FAILED: ErrorMeaning = { comfyType: "execution_error", exit: 1 };

/** All error codes; docs/errors.md shows each with its comment. */
export const ERROR_CODES = {
  /** A required input of a node is absent. */
  "input.missing": badGraph("required_input_missing"),
  /** A value has another type than the input. */
  "input.wrong-type": badGraph("invalid_input_type"),
  /** A number is NaN or infinite. */
  "input.not-finite": badGraph("invalid_input_type"),
  /** A number is below the input's minimum. */
  "input.below-minimum": badGraph("value_smaller_than_min"),
  /** A number is above the input's maximum. */
  "input.above-maximum": badGraph("value_bigger_than_max"),
  /** The value is not one of the input's choices. */
  "input.not-in-list": badGraph("value_not_in_list"),
  /** A value breaks a rule of the node itself, such as the name of a file that does not exist. */
  "input.invalid": badGraph("custom_validation_failed"),
  /** A node needs the network or a key, which the run does not allow. */
  "network.forbidden": badGraph("custom_validation_failed"),
  /** A link names a node or an output that does not exist. */
  "link.bad": badGraph("bad_linked_input"),
  /** A link leads from an output of one type to an input of another. */
  "link.type-mismatch": badGraph("return_type_mismatch"),
  /** The validation of a node threw. */
  "validation.exception": badGraph("exception_during_validation"),
  /** The text or object is not a graph, or a node in it has no class. */
  "graph.invalid": badGraph("invalid_prompt"),
  /** The text is not valid JSON. */
  "graph.invalid-json": badGraph("invalid_prompt"),
  /** The graph uses a node class that is not registered; `details.unknownClasses` lists all of them. */
  "graph.unknown-class": badGraph("invalid_prompt"),
  /** A target is not a node of the graph. */
  "graph.unknown-target": badGraph("invalid_prompt"),
  /** There is no graph: the value is null or undefined. */
  "graph.empty": badGraph("no_prompt"),
  /** The graph has no output node, and no target was named. */
  "graph.no-outputs": badGraph("prompt_no_outputs"),
  /** No output of the graph can be computed, or one cannot and `partial` is not set. */
  "graph.outputs-failed": badGraph("prompt_outputs_failed_validation"),
  /** Links of the graph form a cycle. */
  "graph.cycle": badGraph("invalid_prompt"),
  /** An argument or value is not one of those expected. */
  "value.invalid": badGraph("custom_validation_failed"),
  /** A number is outside the range that a function or an option accepts. */
  "value.out-of-range": badGraph("custom_validation_failed"),
  /** A tensor has another shape than expected, or shapes do not fit together. */
  "tensor.bad-shape": badGraph("custom_validation_failed"),
  /** A tensor would hold more than 2^30 numbers. */
  "tensor.too-large": badGraph("custom_validation_failed"),
  /** The bytes are not a PNG file, or the file is damaged. */
  "png.invalid": badGraph("custom_validation_failed"),
  /** A picture has more than 2^27 pixels, or a part of the file is larger than allowed. */
  "png.too-large": badGraph("custom_validation_failed"),
  /** The bytes are not a picture of a supported format, or the file is damaged. */
  "picture.invalid": badGraph("custom_validation_failed"),
  /** A picture other than PNG has more than 2^27 pixels. */
  "picture.too-large": badGraph("custom_validation_failed"),
  /** sharp, which reads and writes pictures other than PNG, is not installed. */
  "picture.needs-sharp": RUN_FAILED,
  /** The bytes are not a safetensors file, the file is damaged, or it holds other types than expected. */
  "safetensors.invalid": badGraph("custom_validation_failed"),
  /** A model's file is damaged, or its weights do not fit together. */
  "model.invalid": badGraph("custom_validation_failed"),
  /** The model folders have no file of this name; the message lists the nearest names. */
  "model.missing": badGraph("value_not_in_list"),
  /** A model's file holds a different kind of model, or is in a place no session can load it from. */
  "model.unsupported": badGraph("custom_validation_failed"),
  /** A path leads out of the folder it belongs to. */
  "path.outside": badGraph("custom_validation_failed"),
  /** A file does not exist. */
  "file.not-found": badGraph("custom_validation_failed"),
  /** A file cannot be read. */
  "file.read-failed": RUN_FAILED,
  /** A file or folder cannot be written. */
  "file.write-failed": RUN_FAILED,
  /** A node threw, which `cause` holds, or returned something other than its outputs. */
  "node.failed": RUN_FAILED,
  /** The remote image service needs a key, and none is configured. */
  "remote.no-key": { comfyType: "execution_error", exit: 3 },
  /** The remote image service refused the request or sent something unusable. */
  "remote.failed": RUN_FAILED,
  /** The remote image service did not reply in time. */
  "remote.timeout": RUN_FAILED,
  /** The address of an input file was refused: it is not https:, not public, or the file is too large. */
  "download.refused": badGraph("custom_validation_failed"),
  /** An input file could not be downloaded. */
  "download.failed": RUN_FAILED,
  /** The native core of this platform is missing or cannot be loaded. */
  "native.unavailable": RUN_FAILED,
  /** The native core reported a failure, or ran out of memory. */
  "native.failed": RUN_FAILED,
  /** The chosen device cannot be used. */
  "device.unavailable": RUN_FAILED,
  /** onnxruntime-node, which runs checkpoints, is not installed. */
  "runtime.missing": RUN_FAILED,
  /** ONNX Runtime refused or failed to run a network, its process died, or too many runs wait for it. */
  "runtime.failed": RUN_FAILED,
  /** A network needs more memory than is free. */
  "memory.missing": RUN_FAILED,
  /** A GPU failed during an operation. Its tensors are lost, and this process cannot use a GPU again; networks run in a new process. */
  "device.lost": RUN_FAILED,
  /** A node needs a host, or something that the host or model of the run does not offer. */
  "host.missing": badGraph("custom_validation_failed"),
  /** A setup module could not make its nodes and host. */
  "setup.failed": { comfyType: "execution_error", exit: 2 },
  /** A rendering thread ended during a run: it crashed, ran out of memory or was ended by a node. */
  "thread.lost": RUN_FAILED,
  /** The journal of a batch cannot be used: another process holds it, it belongs to another batch, or it is damaged. */
  "journal.refused": badGraph("invalid_prompt"),
  /** The store that spreads a batch over workers cannot be reached, or the files of its workers cannot be read. */
  "store.unavailable": RUN_FAILED,
  /** A file of a batch's items, or one item in it, cannot be read. */
  "items.invalid": badGraph("custom_validation_failed"),
  /** A function or command was called with an unknown or wrong option or argument. */
  "usage.invalid": badGraph("invalid_prompt"),
  /** The configuration has an unknown key or a wrong value, or cannot be read. */
  "config.invalid": { comfyType: "invalid_prompt", exit: 3 },
  /** Ctrl-C ended the command, or a renderer or host was closed during the run. An abort rejects with its signal's reason. */
  "run.interrupted": { comfyType: "execution_interrupted", exit: 130 },
} as const satisfies Record<string, ErrorMeaning>;

/** Stable name of a failure; docs/errors.md lists all. */
export type ErrorCode = keyof typeof ERROR_CODES;

/** Facts behind a message, for programs. Only fields that apply are set. */
export interface ErrorDetails {
  nodeId?: string;
  /** Registry key of the node. */
  node?: string;
  input?: string;
  received?: string;
  expected?: string;
  suggestion?: string;
  /** The operating system's code, such as ENOSPC, of a file that could not be written. */
  systemCode?: string;
  /** Classes of a graph that are not registered, up to 100. */
  unknownClasses?: readonly UnknownClass[];
}

/** A class of a graph that is not registered. */
export interface UnknownClass {
  readonly classType: string;
  /** Number of nodes. */
  readonly count: number;
  /** Ids of the first 100 nodes. */
  readonly nodeIds: readonly string[];
  readonly suggestion?: string;
}

/** Every error the library throws on purpose. `code` is stable; the message is one sentence for a person. */
export class LatentkitError extends Error {
  override readonly name = "LatentkitError";
  readonly code: ErrorCode;
  readonly details: ErrorDetails;

  /** If node's permission model denied what `cause` says, the message ends with the flag that allows it. */
  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}, options?: { cause?: unknown }) {
    const hint = permissionHint(options?.cause);
    super(hint === undefined ? message : `${message} ${hint}`, options);
    this.code = code;
    this.details = details;
  }

  get meaning(): ErrorMeaning {
    return ERROR_CODES[this.code];
  }

  /** Adds the message, which JSON of an Error lacks. */
  toJSON(): { name: string; code: ErrorCode; message: string; details: ErrorDetails } {
    const { name, code, message, details } = this;
    return { name, code, message, details };
  }
}

/** Makes an error of one input: its message names node, input, expected and received value. */
export function inputError(
  code: ErrorCode,
  at: { nodeId?: string; node?: string; input: string },
  expected: string,
  received: unknown,
  suggestion?: string,
): LatentkitError {
  const text = received === undefined && code === "input.missing" ? "nothing" : describe(received);
  const message = `input "${at.input}": expected ${expected}, received ${text}.${hintOf(suggestion)}`;
  return new LatentkitError(code, atNode(at, message), { ...at, expected, received: text, suggestion });
}

/** Error of a value that is not one of some names, with the nearest of them. */
export function notOneOf(subject: string, names: readonly string[], received: unknown): LatentkitError {
  const { suggestion, hint } = suggest(received, names);
  const [expected, text] = [`one of ${names.join(", ")}`, describe(received)];
  const message = `${subject}: expected ${expected}, received ${text}.${hint}`;
  return new LatentkitError("value.invalid", message, { expected, received: text, suggestion });
}

/** Error of one value: "level: expected 0 to 9, received 10.". */
export function valueError(code: ErrorCode, subject: string, expected: string, value: unknown): LatentkitError {
  const received = describe(value);
  return new LatentkitError(code, `${subject}: expected ${expected}, received ${received}.`, { expected, received });
}

/** Message of anything that was thrown, with the code of a failed `fetch`; code or name of an error without one. Never throws. */
export function messageOf(thrown: unknown): string {
  try {
    // errors of another realm, as a test runner makes one, are native ones
    if (!(thrown instanceof Error || types.isNativeError(thrown))) return String(thrown);
    const error = thrown as AggregateError;
    const isFetch = error.message === "fetch failed";
    if (error.message !== "" && !isFetch) return String(error.message);
    const code = codeOf(isFetch ? error.cause : error);
    if (isFetch) return code === undefined ? error.message : `${error.message} (${code})`;
    return code ?? (error.errors?.length ? messageOf(error.errors[0]) : String(error.name));
  } catch {
    return "an error that cannot be shown";
  }
}

/** The code of an error of Node, such as ECONNREFUSED; undefined for any other. */
export function codeOf(error: unknown): string | undefined {
  const code: unknown = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === "string" ? code : undefined;
}

/** The first line of such a message without its full stop, as a part of a sentence. */
export const reasonOf = (error: unknown): string =>
  messageOf(error)
    .replace(/\n.*/s, "")
    .replace(/(?<![.\s])[.\s]+$/, "");

/** Name of a node for a message, "Node 12 (ext imageToMask)", with as much as `at` has. */
export function nodeName(at: { nodeId?: string; node?: string }): string {
  if (at.nodeId === undefined) return at.node ?? "";
  return at.node === undefined ? `Node ${at.nodeId}` : `Node ${at.nodeId} (${at.node})`;
}

/** Message with the node's name in front: a comma before a subject (`input "a": …`), a colon before a sentence. */
export function atNode(at: { nodeId?: string; node?: string }, message: string): string {
  const name = nodeName(at);
  if (name === "") return message;
  const hasSubject = /^(?:input|host) "(?:[^"\\]|\\.)*"(?::|$)/.test(message) || message.includes(": expected ");
  return `${name}${hasSubject ? "," : ":"} ${message}`;
}

/** Foreign text as a JSON string, safe for a terminal. */
export const quoted = (text: string): string => escapeControls(JSON.stringify(text));

/** Mark of this package's tensors, which those of another copy of it lack, and those that came from another thread. */
export const TENSOR: unique symbol = Symbol("tensor");

/** Describes any value for a message: never throws, is never long, and never has a tensor's content. */
export function describe(value: unknown): string {
  if (typeof value === "string") return quoted(value.length > 80 ? `${value.slice(0, 77)}...` : value);
  if (typeof value === "bigint" || typeof value === "number" || typeof value === "boolean") return String(value);
  if (value === null || value === undefined) return String(value);
  if (typeof value === "function") return "a function";
  try {
    if (Array.isArray(value)) return `a list of ${value.length}`;
    if (types.isFloat32Array(value)) return `a Float32Array of ${value.length}`;
    const shape = (value as { shape?: unknown }).shape;
    if (Array.isArray(shape)) {
      const origin = TENSOR in (value as object) ? "" : " of another copy of latentkit or another thread";
      return `a tensor of shape [${shape.join(", ")}]${origin}`;
    }
    // a number literal of a graph file (io/json/lossless)
    const literal = (value as { text?: unknown }).text;
    if (typeof literal === "string" && value.constructor?.name === "NumberLiteral") return literal;
    const [, kind] = /^\[object (\w{1,40})\]$/.exec(Object.prototype.toString.call(value)) ?? [];
    if (kind !== undefined && kind !== "Object") return `${/^[AEIO]/.test(kind) ? "an" : "a"} ${kind}`;
  } catch {
    // a getter or proxy of the caller threw, which says nothing about the input
  }
  return "an object";
}

/** Flags of node by the permission that its error names. */
const FLAGS: Readonly<Record<string, string>> = {
  FileSystemRead: "--allow-fs-read",
  FileSystemWrite: "--allow-fs-write",
  ChildProcess: "--allow-child-process",
  WorkerThreads: "--allow-worker",
};

/** Sentence on the flag that allows what node's permission model denied; undefined for any other error. */
export function permissionHint(error: unknown): string | undefined {
  const { code, permission = "", resource = "" } = (error ?? {}) as Partial<Record<string, string>>;
  if (code === "ERR_DLOPEN_DISABLED" && process.permission !== undefined) return permissionSentence("--allow-addons");
  if (code !== "ERR_ACCESS_DENIED") return undefined;
  const flag = Object.hasOwn(FLAGS, permission) ? FLAGS[permission] : undefined;
  if (flag === undefined) return permissionSentence(`the flag for ${permission}`);
  if (resource === "") return permissionSentence(flag);
  return permissionSentence(`${flag}=${permission === "FileSystemWrite" ? allIn(resource) : resource}`);
}

/** All files of the folder that could not be made or written to: their names differ from run to run. */
const allIn = (path: string): string => join(extname(path) === "" ? path : dirname(path), "*");

const permissionSentence = (flag: string): string => `Node's permission model denied this: start node with ${flag}.`;
