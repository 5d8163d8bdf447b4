import { LatentkitError } from "../../base/errors.js";
import { findDefinition, type Graph } from "../../graph/parse.js";
import { isPlainObject, parseJson, printJson } from "../../io/json/lossless.js";
import { fillGraph } from "../../render/fill/fill.js";
import { defaultRegistry } from "../../render/surroundings.js";
import { EVENT_LINES } from "../agent/message.js";
import type { RunRow } from "../hooks/run.js";
import { inputsOf, rolesOf } from "./shown-graph.js";

/** Characters of a message that are read, and of a graph: a few milliseconds. */
const MOST_MESSAGE = 65_536;
export const MOST_GRAPH = 65_536;
/** Characters of a title, of a value, and of the text that is searched. */
const TITLE_CHARACTERS = 120;
const VALUE_CHARACTERS = 2000;
const SEARCHED_CHARACTERS = 4000;
const MOST_VALUES = 50;
const MOST_MODELS = 4;
const MODEL_INPUTS: ReadonlySet<string> = new Set(["ckpt_name", "unet_name"]);
const MODEL_FILE = /\.(?:safetensors|sft|ckpt|gguf|onnx|pt|pth|bin)$/i;

/** Facts by which people know a run. */
export interface RunFacts {
  /** First words of its message or prompt; "" if it has none. */
  readonly title: string;
  /** Values that it was started with, by names. */
  readonly values: readonly (readonly [name: string, value: string])[];
  /** Names of its checkpoints. */
  readonly models: readonly string[];
  /** Text that a search looks through, in small letters. */
  readonly searched: string;
}

// Read off message and graph when shown: neither changes, so no store needs a column.
/** Facts of a run; `graph` is its own, undefined if it has none or a very large one. */
export function factsOf(run: Pick<RunRow, "message" | "graph">, graph: Graph | undefined): RunFacts {
  const own = run.graph !== null && run.graph.name === null ? {} : messageValues(run.message);
  const filled = graph && filledGraph(graph, own);
  const roles = (filled === undefined ? [] : rolesOf(filled)).map(({ nodeId, input, role }) => {
    return [role, asText(inputsOf(filled!.prompt[nodeId])[input])] as const;
  });
  const texts = Object.entries(own).map(([name, value]) => [name, asText(value)] as const);
  // equal numbers may be those of other inputs
  const isSaid = (role: string, value: string) =>
    texts.some(([name, text]) => text === value && (isWords(value) || name.toLowerCase() === role.toLowerCase()));
  const values = [...texts, ...roles.filter(([role, text]) => text !== "" && !isSaid(role, text))].slice(
    0,
    MOST_VALUES,
  );
  const files = filled === undefined ? [] : filesOf(filled);
  const prompt = roles.find(([role]) => role === "Prompt" || role === "Positive prompt")?.[1];
  const message = typeof own.message === "string" ? own.message : undefined;
  const searched = [...values.map(([, text]) => text), ...files.map(({ file }) => file)].join("\n");
  return {
    title: cut(oneLine(message || prompt || texts.map(([, text]) => text).find(isWords) || ""), TITLE_CHARACTERS),
    values: values.map(([name, text]) => [name, cut(text, VALUE_CHARACTERS)]),
    models: [...new Set(files.filter(({ isModel }) => isModel).map(({ file }) => cut(file, 200)))].slice(
      0,
      MOST_MODELS,
    ),
    searched: cut(searched, SEARCHED_CHARACTERS).toLowerCase(),
  };
}

/** Values of a message that is a JSON object, else the text itself as `message`. */
function messageValues(message: string): Readonly<Record<string, unknown>> {
  const text = message.slice(0, MOST_MESSAGE).replace(EVENT_LINES, "").trim();
  if (text === "") return {};
  if (text.startsWith("{") && message.length <= MOST_MESSAGE) {
    const value = attempt(() => parseJson(text));
    if (isPlainObject(value)) return value;
  }
  return { message: text };
}

/** `messageValues`, as texts. */
export const messageTexts = (message: string): Record<string, string> =>
  Object.fromEntries(Object.entries(messageValues(message)).map(([key, value]) => [key, asText(value)]));

/** The graph with the values put in; unchanged if they do not fit. */
function filledGraph(graph: Graph, values: Readonly<Record<string, unknown>>): Graph {
  if (Object.keys(values).length === 0) return graph;
  const definitionOf = (type: string) => findDefinition(graph, type, defaultRegistry);
  const prompt = attempt(() => fillGraph({ ...graph.prompt }, values, definitionOf));
  return prompt === undefined ? graph : { ...graph, prompt };
}

/** Names of model files in a graph, each once for each input. */
function filesOf(graph: Graph): { file: string; isModel: boolean }[] {
  return graph.ids.flatMap((id) =>
    Object.entries(inputsOf(graph.prompt[id])).flatMap(([input, file]) => {
      const isModel = MODEL_INPUTS.has(input);
      return typeof file === "string" && (isModel || MODEL_FILE.test(file.slice(-16))) ? [{ file, isModel }] : [];
    }),
  );
}

/** Returns what the work does; undefined if it throws a LatentkitError. */
export function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (error instanceof LatentkitError) return undefined;
    throw error;
  }
}

const isWords = (text: string) => /\p{L}/u.test(text);

const oneLine = (text: string) => text.slice(0, VALUE_CHARACTERS).replace(/\s+/g, " ").trim();

/** The beginning of a text, without half of a character. */
const cut = (text: string, most: number) =>
  text.length <= most ? text : `${text.slice(0, most - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;

const asText = (value: unknown): string =>
  value === undefined ? "" : typeof value === "string" ? value : printJson(value);
