import { LatentkitError } from "../../base/errors.js";
import { type Graph, parseGraph } from "../../graph/parse.js";
import { RECEIPT_KEY } from "../../io/files/save-images.js";
import { printJson } from "../../io/json/lossless.js";
import { pictureKind } from "../../io/pictures/kind.js";
import { pictureTexts } from "../../io/pictures/texts.js";
import { defaultRegistry } from "../../render/defaults.js";
import { readReceipt } from "../../render/receipt/read.js";
import type { Receipt } from "../../render/receipt/receipt.js";
import { parametersOf } from "../../render/schema/parameters.js";
import { readGraph } from "../../render/source.js";
import { servedValues } from "./served-values.js";
import { type ShownNode, type ShownParameter, shownNodes, shownParameters } from "./shown-graph.js";

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
    /** The graph in API format; null where the service runs the graphs of its configuration alone. */
    readonly text: string | null;
  } | null;
  /** Sentence that says why there is no graph. */
  readonly problem: string | null;
  readonly receipt: Receipt | null;
  /** Graph of the service that this one is, and its values; null where it is another graph. */
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
