import { parseGraph } from "../../graph/parse.js";
import { printJson } from "../../io/json/lossless.js";
import { defaultRegistry } from "../../render/defaults.js";
import { parametersOf } from "../../render/schema/parameters.js";
import { messageTexts } from "./run-facts.js";
import { type ShownParameter, shownParameters } from "./shown-graph.js";

/** Fields of a run, with what it was started with. */
export interface RunForm {
  readonly parameters: readonly ShownParameter[];
  /** Values by the keys of the parameters, as texts. */
  readonly values: Readonly<Record<string, string>>;
  /** The graph in API format; null where the run is one of a graph of the service, or no other graph may be run. */
  readonly text: string | null;
}

/** The form of a run with a graph; `message`: that of a graph of the service, null where the run brought its graph. */
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
