import type { Classes } from "./definitions.js";
import { BYPASSED, type EditorGraph, type EditorNode, invalid, MUTED, nameOfNode } from "./document.js";
import { assignValues, namedWidgets, widgetsOf } from "./widgets.js";

/** Deeper than people nest subgraphs. */
const MAX_DEPTH = 32;
const MAX_NODES = 200_000;

type Values = Map<string, unknown>;

/** One inside of a subgraph or group node, or the workflow itself: a definition may stand behind several nodes. */
export interface Scope {
  readonly graph: EditorGraph;
  /** Ids of the nodes around it, each with a colon: "12:3:". */
  readonly prefix: string;
  readonly outer?: { readonly scope: Scope; readonly node: EditorNode };
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
  let count = 0;
  // grows while it is read
  for (const scope of scopes) {
    count += scope.graph.nodes.size;
    if (count > MAX_NODES) throw invalid(`expected at most ${MAX_NODES} nodes with all subgraphs, received more.`);
    for (const node of scope.graph.nodes.values()) {
      const inside = definitions.get(node.type);
      if (inside === undefined || node.mode === MUTED || node.mode === BYPASSED) continue;
      const prefix = `${scope.prefix}${node.id}:`;
      if (prefix.split(":").length > MAX_DEPTH + 1) {
        throw invalid(`${nameOfNode(node, scope.prefix)}: subgraphs are nested deeper than ${MAX_DEPTH} levels.`);
      }
      const values = inside.groupWidgets === undefined ? valuesOf(scope, node) : groupValues(node, inside, classes);
      const inner: Scope = { graph: inside, prefix, outer: { scope, node }, ...values, inner: new Map() };
      scope.inner.set(node.id, inner);
      scopes.push(inner);
    }
  }
  return scopes;
}

type Held = Pick<Scope, "own" | "shown">;

/** Values that a subgraph's node holds: for its own inputs, and for widgets of inner nodes that it shows. */
function valuesOf(scope: Scope, node: EditorNode): Held {
  const own: Values = new Map();
  const shown = new Map<string, Values>();
  const { values, promoted } = node;
  const list = Array.isArray(values) ? values : [];
  if (promoted.length > 0 && promoted.length === list.length) {
    for (const [index, [id, name]] of promoted.entries()) give(own, shown, id, name, list[index]);
  } else {
    for (const [name, value] of assignValues(namedWidgets(node), list).byName) own.set(name, value);
  }
  // the node around this one may show a widget that this one shows
  for (const [name, value] of scope.shown.get(node.id) ?? []) {
    const id = promoted.find(([inner, widget]) => widget === name && inner !== SELF)?.[0];
    const isOwn = node.inputs.some(({ widget }) => widget === name);
    give(own, shown, isOwn || id === undefined ? SELF : id, name, value);
  }
  return { own, shown };
}

/** Id by which a subgraph's node means itself. */
const SELF = "-1";

function give(own: Values, shown: Map<string, Values>, id: string, name: string, value: unknown): void {
  if (value === undefined || value === null) return;
  if (id === SELF) own.set(name, value);
  else shown.set(id, (shown.get(id) ?? new Map()).set(name, value));
}

/** Values of a group node belong to the visible widgets of its inner nodes, in order. */
function groupValues({ values }: EditorNode, { groupWidgets = [] }: EditorGraph, classes: Classes): Held {
  const shown = new Map<string, Values>();
  const list = Array.isArray(values) ? values : [];
  let at = 0;
  for (const { node, hidden } of groupWidgets) {
    const widgets = widgetsOf(node, classes(node.type)).filter(({ name }) => !hidden.has(name));
    const { byName, next } = assignValues(widgets, list, at);
    shown.set(node.id, byName);
    at = next;
  }
  return { own: new Map(), shown };
}
