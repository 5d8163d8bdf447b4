import {
  BYPASSED,
  type EditorGraph,
  type EditorInput,
  type EditorNode,
  invalid,
  MUTED,
  nameOfNode,
  refuseMoreInputs,
} from "./document.js";
import type { Classes } from "./subgraphs.js";
import { assignValues, namedWidgets, savedWidgets } from "./widgets.js";

/** Deeper than people nest subgraphs. */
const MAX_DEPTH = 32;
const MAX_NODES = 200_000;

type Values = Map<string, unknown>;
type InputsByName = ReadonlyMap<string, EditorInput>;

/** One inside of a subgraph or group node, or the workflow itself: a definition may stand behind several nodes. */
export interface Scope {
  readonly graph: EditorGraph;
  /** Ids of the nodes around it, each with a colon: "12:3:". */
  readonly prefix: string;
  readonly outer?: { readonly scope: Scope; readonly node: EditorNode; readonly inputs: InputsByName };
  /** Values of the widgets that the node around it shows for its own inputs, by the widget's name. */
  readonly own: Values;
  /** Values that the node around it holds for widgets of inner nodes, by the inner node's id. */
  readonly shown: ReadonlyMap<string, Values>;
  /** Insides of the nodes in it that stand for a subgraph or group, by their id. */
  readonly inner: Map<string, Scope>;
}

/** Opens a workflow with all its subgraphs. Throws graph.invalid for a subgraph inside itself, and beyond 200,000 nodes. */
export function openScopes(
  graph: EditorGraph,
  definitions: ReadonlyMap<string, EditorGraph>,
  classes: Classes,
): Scope[] {
  const scopes: Scope[] = [{ graph, prefix: "", own: new Map(), shown: new Map(), inner: new Map() }];
  const count = createCounter();
  count(graph);
  // grows while it is read
  for (const scope of scopes) {
    for (const node of scope.graph.nodes.values()) {
      const inside = definitions.get(node.type);
      if (inside === undefined || node.mode === MUTED || node.mode === BYPASSED) continue;
      const prefix = `${scope.prefix}${node.id}:`;
      if (prefix.split(":").length > MAX_DEPTH + 1) {
        throw invalid(`${nameOfNode(node, scope.prefix)}: subgraphs are nested deeper than ${MAX_DEPTH} levels.`);
      }
      count(inside);
      const values = inside.groupWidgets === undefined ? valuesOf(scope, node) : groupValues(node, inside, classes);
      const inner: Scope = {
        graph: inside,
        prefix,
        outer: { scope, node, inputs: new Map(node.inputs.map((input) => [input.name, input])) },
        ...values,
        inner: new Map(),
      };
      scope.inner.set(node.id, inner);
      scopes.push(inner);
    }
  }
  return scopes;
}

/** Counts the graphs that are opened; throws graph.invalid beyond the bounds. */
function createCounter(): (graph: EditorGraph) => void {
  const sizes = new Map<EditorGraph, number>();
  let [nodes, entries] = [0, 0];
  return (graph) => {
    const size = sizes.get(graph) ?? entriesOf(graph);
    sizes.set(graph, size);
    nodes += graph.nodes.size;
    entries += size;
    if (nodes > MAX_NODES) throw invalid(`expected at most ${MAX_NODES} nodes with all subgraphs, received more.`);
    refuseMoreInputs(entries);
  };
}

function entriesOf({ nodes }: EditorGraph): number {
  let entries = 0;
  for (const { inputs, values } of nodes.values()) entries += inputs.length + values.length;
  return entries;
}

type Held = Pick<Scope, "own" | "shown">;

/** Values that a subgraph's node holds: for its own inputs, and for widgets of inner nodes that it shows. */
function valuesOf(scope: Scope, node: EditorNode): Held {
  const own: Values = new Map();
  const shown = new Map<string, Values>();
  const { values, named = {} } = node;
  const widgets = namedWidgets(node);
  // pictures that it shows may lack a value
  const promoted = [node.promoted, node.promoted.filter(([, name]) => !name.startsWith("$$"))].find(
    ({ length }) => length > 0 && length === values.length,
  );
  const inner = node.promoted.filter(([id]) => id !== SELF);
  if (promoted !== undefined) {
    for (const [index, [id, name]] of promoted.entries()) give(own, shown, id, name, values[index]);
  } else {
    const { byName, next } = assignValues(widgets, values);
    for (const [name, value] of byName) give(own, shown, SELF, name, value);
    if (values.length - next === inner.length)
      for (const [index, [id, name]] of inner.entries()) give(own, shown, id, name, values[next + index]);
  }
  const owners = new Map<string, string>();
  const shared = new Set<string>();
  for (const [id, name] of [...inner, ...widgets.map((widget) => [SELF, widget.name] as const)]) {
    if (owners.has(name)) shared.add(name);
    owners.set(name, id);
  }
  // a name that several widgets have does not say whose value it is
  for (const [name, id] of owners)
    if (!shared.has(name) && Object.hasOwn(named, name)) give(own, shown, id, name, named[name]);
  // the node around this one may show a widget that this one shows
  for (const [name, value] of scope.shown.get(node.id) ?? []) give(own, shown, owners.get(name) ?? SELF, name, value);
  return { own, shown };
}

/** Id by which a subgraph's node refers to itself. */
const SELF = "-1";

function give(own: Values, shown: Map<string, Values>, id: string, name: string, value: unknown): void {
  if (value === undefined || value === null) return;
  if (id === SELF) own.set(name, value);
  else shown.set(id, (shown.get(id) ?? new Map()).set(name, value));
}

/**
 * Values of a group node belong to the visible widgets of its inner nodes, in order or by name. If a name is taken,
 * the inner node's title precedes it, with a number after the title if that is taken too.
 */
function groupValues(group: EditorNode, { groupWidgets = [] }: EditorGraph, classes: Classes): Held {
  const { values, named = {} } = group;
  const held = { own: new Map(), shown: new Map<string, Values>() };
  const taken = new Map<string, number>();
  let at = 0;
  for (const { node, hidden, labels } of groupWidgets) {
    const widgets = savedWidgets(node, classes(node.type)).filter(({ name }) => !hidden.has(name));
    const { byName, next } = assignValues(widgets, values, at);
    at = next;
    const title = node.title ?? node.type;
    for (const { name } of widgets) {
      const label = labels.get(name) ?? name;
      const key = taken.has(label) ? `${title} ${name}` : label;
      const times = (taken.get(key) ?? 0) + 1;
      taken.set(key, times);
      const shownAs = times > 1 ? `${title} ${times} ${name}` : key;
      give(held.own, held.shown, node.id, name, byName.get(name));
      if (Object.hasOwn(named, shownAs)) give(held.own, held.shown, node.id, name, named[shownAs]);
    }
  }
  return held;
}
