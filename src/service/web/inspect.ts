import { isUtf8 } from "node:buffer";
import { LatentkitError } from "../../base/errors.js";
import { findDefinition, type Graph, parseGraph } from "../../graph/parse.js";
import { RECEIPT_KEY } from "../../io/files/save-images.js";
import { isPlainObject, parseJson, printJson } from "../../io/json/lossless.js";
import { pictureTexts } from "../../io/pictures/decode.js";
import { pictureKind } from "../../io/pictures/format.js";
import type { Registry } from "../../nodes/registry.js";
import { fillGraph } from "../../render/fill/fill.js";
import { PRIMITIVE_INPUT, placeholderKeys, replacePlaceholders } from "../../render/fill/keys.js";
import { titleKeys } from "../../render/fill/targets.js";
import { type Receipt, readReceipt } from "../../render/receipt/receipt.js";
import { parametersOf } from "../../render/schema/graph-schema.js";
import { readGraph } from "../../render/source.js";
import { defaultRegistry } from "../../render/surroundings.js";
import { fillWorkflow } from "../agent/message.js";
import { messageTexts } from "./run-facts.js";
import { inputsOf, type ShownNode, type ShownParameter, shownNodes, shownParameters } from "./shown-graph.js";

/** Characters of each text that are shown. */
const MOST_CHARACTERS = 65_536;
const MOST_TEXTS = 50;

/** A graph that messages fill, as JSON text. */
export interface ServedGraph {
  readonly name: string;
  readonly text: string;
}

/** Contents of a picture or a graph's file that the page shows. */
export interface Inspection {
  /** Format of the picture; json for a graph. */
  readonly format: string;
  readonly graph: {
    readonly nodes: readonly ShownNode[];
    readonly parameters: readonly ShownParameter[];
    /** The graph in API format; null if the service runs only the graphs of its configuration. */
    readonly text: string | null;
  } | null;
  /** Sentence that says why there is no graph. */
  readonly problem: string | null;
  readonly receipt: Receipt | null;
  /** Graph of the service that this one is, and its values; null if it is another graph. */
  readonly served: { readonly name: string; readonly values: Readonly<Record<string, string>> } | null;
  /** Other texts of a picture, cut to 65,536 characters each. */
  readonly texts: Readonly<Record<string, string>>;
}

/**
 * Reads the graph, receipt and texts of a file's bytes, and looks for its graph among those served. A file that holds
 * none of them has a `problem`. `runsAny`: the service runs any graph.
 */
export function inspect(bytes: Uint8Array, served: readonly ServedGraph[] = [], runsAny = false): Inspection {
  const format = pictureKind(bytes) ?? "json";
  const problems: string[] = [];
  const attempt = <T>(read: () => T): T | undefined => {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof LatentkitError)) throw error;
      problems.push(error.message);
      return undefined;
    }
  };
  const { [RECEIPT_KEY]: written, ...others } = (format === "json" ? {} : attempt(() => pictureTexts(bytes))) ?? {};
  const graph = attempt(() => {
    const parsed = parseGraph(readGraph(bytes).graph);
    const parameters = parametersOf(parsed, { registry: defaultRegistry });
    const named = new Set(parametersOf(parsed, { registry: defaultRegistry, named: true }).map(({ key }) => key));
    const shown = {
      nodes: shownNodes(parsed, defaultRegistry),
      parameters: shownParameters(parsed, parameters, named),
      text: runsAny ? printJson(parsed.prompt) : null,
    };
    return { shown, served: findServed(parsed, served) };
  });
  const texts = Object.entries(others).slice(0, MOST_TEXTS);
  return {
    format,
    graph: graph?.shown ?? null,
    problem: problems[0] ?? null,
    receipt: (written === undefined ? undefined : readReceipt(written)) ?? null,
    served: graph?.served ?? null,
    texts: Object.fromEntries(texts.map(([key, text]) => [key, text.slice(0, MOST_CHARACTERS)])),
  };
}

function findServed(graph: Graph, served: readonly ServedGraph[]): Inspection["served"] {
  for (const { name, text } of served) {
    const values = servedValues(parseGraph(text), graph, defaultRegistry);
    if (values !== undefined) return { name, values };
  }
  return null;
}

// Values count as found only if the service's graph, filled with them, prints the same text.
/**
 * Values of the named parameters with which a graph of the service becomes another graph, as texts; undefined if no
 * such values are found.
 *
 * @internal
 */
export function servedValues(served: Graph, other: Graph, registry: Registry): Record<string, string> | undefined {
  if (served.ids.join() !== other.ids.join()) return undefined;
  const definitionOf = (type: string) => findDefinition(served, type, registry);
  const titles = titleKeys(served.prompt, definitionOf);
  const values = new Map<string, string>();
  for (const id of served.ids) {
    const inputs = inputsOf(other.prompt[id]);
    for (const [name, value] of Object.entries(inputsOf(served.prompt[id]))) {
      const isTitled = name === PRIMITIVE_INPUT && titles.has(id);
      const [key, text] = isTitled ? [titles.get(id)!, scalarText(inputs[name])] : (between(value, inputs[name]) ?? []);
      if (key !== undefined && text !== undefined && !values.has(key)) values.set(key, text);
    }
  }
  const found = Object.fromEntries(values);
  const filled = fillGraph({ ...served.prompt }, found, definitionOf);
  // the resulting graph decides, whatever was read above
  return printJson(filled) === printJson(other.prompt) ? found : undefined;
}

/** Key of the one placeholder of a text, and what stands in its place. */
function between(template: unknown, value: unknown): [key: string, text: string] | undefined {
  const [key, second] = typeof template === "string" ? placeholderKeys(template) : [];
  const text = scalarText(value);
  if (typeof template !== "string" || key === undefined || second !== undefined || text === undefined) return undefined;
  let length = 0;
  const start = replacePlaceholders(template, (mark) => {
    length = mark.length;
    return "\u0000";
  }).indexOf("\u0000");
  const end = template.length - start - length;
  const isFilled = text.startsWith(template.slice(0, start)) && text.endsWith(template.slice(start + length));
  return isFilled && text.length >= start + end ? [key, text.slice(start, text.length - end)] : undefined;
}

/** A text, or a number or boolean as one; undefined for anything else. */
function scalarText(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (value === undefined || value === null || Array.isArray(value) || isPlainObject(value)) return undefined;
  return printJson(value);
}

/** Fields of a run, with what it was started with. */
export interface RunForm {
  readonly parameters: readonly ShownParameter[];
  /** Values by the keys of the parameters, as texts. */
  readonly values: Readonly<Record<string, string>>;
  /** The graph in API format; null if the run is one of a graph of the service, or no other graph may be run. */
  readonly text: string | null;
}

/** The form of a run with a graph; `message`: that of a graph of the service, null if the run brought its graph. */
export function formOfRun(bytes: Uint8Array, message: string | null, runsAny: boolean): RunForm {
  const graph = parseGraph(new TextDecoder().decode(bytes));
  const named = parametersOf(graph, { registry: defaultRegistry, named: true });
  const keys = new Set(named.map(({ key }) => key));
  if (message !== null) {
    const parameters = shownParameters(graph, named, keys);
    const values = Object.entries(messageTexts(message)).filter(([key]) => keys.has(key));
    return { parameters, values: Object.fromEntries(values), text: null };
  }
  const parameters = shownParameters(graph, parametersOf(graph, { registry: defaultRegistry }), keys);
  const first = parameters.filter(({ named, role }) => named || role !== undefined);
  const values = first.flatMap(({ key, default: value }) =>
    value === undefined ? [] : [[key, String(value)] as const],
  );
  return { parameters, values: Object.fromEntries(values), text: runsAny ? printJson(graph.prompt) : null };
}

// Filled here and not in the browser, which would round long seeds.
/**
 * The body of a job of the Comfy API, as JSON with every digit: the graph of `{ graph, values }` with its values put in,
 * each under its key in `set`. Throws as `fillWorkflow` does.
 */
export function filledJob(bytes: Uint8Array): string {
  if (!isUtf8(bytes)) throw new LatentkitError("usage.invalid", "Body: expected UTF-8.");
  const body = parseJson(new TextDecoder().decode(bytes), { what: "Body" });
  if (!isPlainObject(body) || !isPlainObject(body.graph) || !isPlainObject(body.values)) {
    throw new LatentkitError("usage.invalid", "Body: expected { graph, values }, both objects.");
  }
  return printJson({ workflow: fillWorkflow(body.graph, body.values, { registry: defaultRegistry }) });
}
