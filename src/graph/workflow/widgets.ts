import { LatentkitError } from "../../base/errors.js";
import type { NodeDefinition } from "../../nodes/define.js";
import type { InputSpec } from "../../nodes/inputs.js";
import { coreWidgets } from "./core-widgets.js";
import { type EditorNode, nameOfNode } from "./document.js";

/** Types whose inputs are widgets in the editor; all others are sockets. */
const WIDGET_TYPES: ReadonlySet<string> = new Set(["INT", "FLOAT", "STRING", "BOOLEAN", "COMBO"]);
/** Seeds have a second widget behind them, which is no input: what happens to the seed after each run. */
const SEEDS: ReadonlySet<string> = new Set(["seed", "noise_seed"]);
const AFTER_RUN: ReadonlySet<unknown> = new Set(["fixed", "increment", "decrement", "randomize"]);

export interface Widget {
  readonly name: string;
  /** INT … COMBO as far as the file tells. */
  readonly type: string;
  readonly isSeed: boolean;
}

const isWidget = ({ type, options }: InputSpec): boolean => WIDGET_TYPES.has(type) && options.forceInput !== true;

/**
 * Widgets of a node in the editor's order: its class's, required inputs first, unless the file names them all, as newer
 * editors do; of a class that nobody here knows, those that the file names.
 */
export function widgetsOf(node: EditorNode, definition: NodeDefinition | undefined): Widget[] {
  const named = namedWidgets(node);
  const known = definition === undefined ? coreWidgets(node.type)?.map(plainWidget) : classWidgets(definition);
  return known === undefined || namesAll(node, named, known) ? named : known;
}

const plainWidget = (name: string): Widget => ({ name, type: "*", isSeed: SEEDS.has(name) });

function classWidgets({ inputs }: NodeDefinition): Widget[] {
  const specs = Object.entries(inputs).filter(([, spec]) => isWidget(spec));
  const ordered = [...specs.filter(([, { optional }]) => !optional), ...specs.filter(([, { optional }]) => optional)];
  return ordered.map(([name, { type, options }]) => ({
    name,
    type,
    isSeed: (SEEDS.has(name) && type === "INT") || options.control_after_generate === true,
  }));
}

/** Whether a newer editor wrote the file: it lists each widget, where older ones list those alone that take a link. */
function namesAll({ inputs }: EditorNode, named: readonly Widget[], known: readonly Widget[]): boolean {
  if (!inputs.some(({ widget, link }) => widget !== undefined && link === undefined)) return false;
  const names = new Set(named.map(({ name }) => name));
  return known.every(({ name }) => names.has(name));
}

/** Widgets that the file names among a node's inputs: all of them in files of newer editors. */
export const namedWidgets = ({ inputs }: EditorNode): Widget[] =>
  inputs
    .filter(({ widget }) => widget !== undefined)
    .map(({ widget, type }) => ({ name: widget!, type, isSeed: SEEDS.has(widget!) }));

/**
 * Values of a node's widgets by name, the defaults of those that its class had not yet when the file was saved, as the
 * editor shows them. Throws graph.invalid where nothing says which value is whose.
 */
export function widgetValues(node: EditorNode, definition: NodeDefinition | undefined): Map<string, unknown> {
  const values = storedValues(node, definition);
  for (const [name, spec] of Object.entries(definition?.inputs ?? {})) {
    if (values.has(name) || spec.optional || !isWidget(spec)) continue;
    const [first] = Array.isArray(spec.choices) ? spec.choices : [];
    const value = spec.options.default ?? first;
    if (value !== undefined) values.set(name, value);
  }
  return values;
}

function storedValues(node: EditorNode, definition: NodeDefinition | undefined): Map<string, unknown> {
  const { values } = node;
  const widgets = widgetsOf(node, definition);
  if (!Array.isArray(values)) return namedValues(values as Readonly<Record<string, unknown>>, definition && widgets);
  const { byName, next } = assignValues(widgets, values);
  const isKnown = definition !== undefined || coreWidgets(node.type) !== undefined;
  if (!isKnown && values.slice(next).some(isInputValue)) throw unnamed(node);
  return byName;
}

function namedValues(values: Readonly<Record<string, unknown>>, widgets?: readonly Widget[]): Map<string, unknown> {
  const names = new Set(widgets?.map(({ name }) => name));
  return new Map(Object.entries(values).filter(([name]) => widgets === undefined || names.has(name)));
}

/** Gives values to widgets in order, from the value `start`; `next` is the first that is left. */
export function assignValues(
  widgets: readonly Widget[],
  values: readonly unknown[],
  start = 0,
): { byName: Map<string, unknown>; next: number } {
  const byName = new Map<string, unknown>();
  let next = start;
  for (const [index, { name, type, isSeed }] of widgets.entries()) {
    if (next >= values.length) break;
    byName.set(name, values[next++]);
    if (isSeed || type === "INT") next += afterRun(values, next, { widgets, index: index + 1 }, isSeed);
  }
  return { byName, next };
}

/** Returns 1 where a value belongs to the widget behind a seed, else 0. */
function afterRun(
  values: readonly unknown[],
  at: number,
  { widgets, index }: { readonly widgets: readonly Widget[]; readonly index: number },
  isSeed: boolean,
): number {
  const value = values[at];
  const following = widgets[index]?.type;
  if (AFTER_RUN.has(value)) return isSeed || (following !== "STRING" && following !== "COMBO") ? 1 : 0;
  // files of 2023 have true or false there
  const isFlag = isSeed && typeof value === "boolean";
  return isFlag && (following !== "BOOLEAN" || values.length - at > widgets.length - index) ? 1 : 0;
}

/** Values behind the last widget belong to buttons, such as the one that uploads a file. */
const isInputValue = (value: unknown): boolean =>
  value !== null && value !== "" && value !== "image" && typeof value !== "object" && !AFTER_RUN.has(value);

const unnamed = (node: EditorNode): LatentkitError =>
  new LatentkitError(
    "graph.invalid",
    `Workflow: ${nameOfNode(node)} cannot be converted: its class is not known here, and the file does not name its widgets. Save the workflow in a newer editor, or export it in API format.`,
    { nodeId: node.id },
  );
