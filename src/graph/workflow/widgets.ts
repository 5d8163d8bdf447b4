import type { NodeDefinition } from "../../nodes/define.js";
import type { InputSpec } from "../../nodes/inputs.js";
import { defaultOf } from "../../nodes/values.js";
import { coreWidgets } from "./core-widgets.js";
import type { EditorNode } from "./document.js";

/** Types whose inputs are widgets in the editor; all others are sockets. */
const WIDGET_TYPES: ReadonlySet<string> = new Set(["INT", "FLOAT", "STRING", "BOOLEAN", "COMBO"]);
/** Seeds have a second widget behind them, which is no input: what happens to the seed after each run. */
const SEEDS: ReadonlySet<string> = new Set(["seed", "noise_seed"]);
const AFTER_RUN_WIDGET = "control_after_generate";
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
function widgetsOf(node: EditorNode, definition: NodeDefinition | undefined): Widget[] {
  const known = knownWidgets(node, definition);
  // an older file lists those alone that take a link
  const isNewer =
    known === undefined || node.inputs.some(({ widget, link }) => widget !== undefined && link === undefined);
  return isNewer && listsWidgets(node, definition) ? namedWidgets(node) : (known ?? namedWidgets(node));
}

/** Widgets of a node that its class had when the file was saved, as far as its own values tell. */
export function savedWidgets(node: EditorNode, definition: NodeDefinition | undefined): Widget[] {
  const widgets = widgetsOf(node, definition);
  return node.values.length === 0 ? widgets : widgets.slice(0, assignValues(widgets, node.values).byName.size);
}

function knownWidgets({ type }: EditorNode, definition: NodeDefinition | undefined): Widget[] | undefined {
  return definition === undefined ? coreWidgets(type)?.map(plainWidget) : classWidgets(definition);
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

/** Whether the inputs of a node list all widgets that its class had when the file was saved. */
export function listsWidgets(node: EditorNode, definition: NodeDefinition | undefined): boolean {
  const named = namedWidgets(node);
  const names = new Set(named.map(({ name }) => name));
  if (knownWidgets(node, definition)?.every(({ name }) => names.has(name))) return true;
  // a class that has gained a widget since: the widgets listed are as many as the values
  const { values } = node;
  return values.length > 0 && values.slice(assignValues(named, values).next).every(isOfButton);
}

/** Whether a name is that of a widget of a class. */
export const hasWidget = (definition: NodeDefinition | undefined, name: string): boolean =>
  definition !== undefined && Object.hasOwn(definition.inputs, name) && isWidget(definition.inputs[name]!);

/** Widgets that the file names among a node's inputs: all of them in files of newer editors. */
export const namedWidgets = ({ inputs }: EditorNode): Widget[] =>
  inputs
    .filter(({ widget }) => widget !== undefined)
    .map(({ widget, type }) => ({ name: widget!, type, isSeed: SEEDS.has(widget!) }));

/**
 * Values of a node's widgets by name, the defaults of those that its class had not yet when the file was saved, as the
 * editor shows them.
 */
export function widgetValues(node: EditorNode, definition: NodeDefinition | undefined): Map<string, unknown> {
  const values = storedValues(node, definition);
  for (const [name, value] of values)
    if (value === undefined || (value === null && definition !== undefined)) values.delete(name);
  for (const [name, spec] of Object.entries(definition?.inputs ?? {})) {
    if (values.has(name) || spec.optional || !isWidget(spec)) continue;
    const value = defaultOf(spec);
    if (value !== undefined) values.set(name, value);
  }
  return values;
}

/** Values of a node: those that the file names, and of the others those of its list, unless the names are all it has. */
function storedValues(node: EditorNode, definition: NodeDefinition | undefined): Map<string, unknown> {
  const listed = assignValues(widgetsOf(node, definition), node.values).byName;
  if (node.named === undefined) return listed;
  const known = definition && new Set([...classWidgets(definition), ...namedWidgets(node)].map(({ name }) => name));
  const named = namesOf(node).filter((name) => known?.has(name) ?? true);
  // a class may have gained a widget since: the place of a value in the list is certain only where there are more
  const stored = named.length < listed.size ? listed : new Map<string, unknown>();
  for (const name of named)
    if (isHole(stored.get(name)) || !isHole(node.named[name])) stored.set(name, node.named[name]);
  return stored;
}

/** Names of the widgets whose values the file names. */
const namesOf = ({ named = {} }: EditorNode): string[] =>
  Object.keys(named).filter((name) => name !== AFTER_RUN_WIDGET);

const isHole = (value: unknown): boolean => value === undefined || value === null;

/** Whether the file, or a class that is known, says which value of a node is whose. */
export function namesValues(node: EditorNode, definition: NodeDefinition | undefined): boolean {
  const { values, named, type } = node;
  if (definition !== undefined || coreWidgets(type) !== undefined) return true;
  if (named !== undefined && values.filter(isInputValue).length <= namesOf(node).length) return true;
  return !values.slice(assignValues(namedWidgets(node), values).next).some(isInputValue);
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
  const hasMore = values.length - at > widgets.length - index;
  if (AFTER_RUN.has(value)) return isSeed || (following !== "STRING" && following !== "COMBO") ? 1 : 0;
  // files of 2023 have true or false there
  if (isSeed && typeof value === "boolean") return following !== "BOOLEAN" || hasMore ? 1 : 0;
  return isSeed && at < values.length && isHole(value) && hasMore ? 1 : 0;
}

/** Values behind the last widget belong to buttons, such as the one that uploads a file. */
const isInputValue = (value: unknown): boolean =>
  value !== null && value !== "" && value !== "image" && typeof value !== "object" && !AFTER_RUN.has(value);
const isOfButton = (value: unknown): boolean => value === undefined || value === null || value === "image";
