import { describe } from "../../base/errors.js";
import {
  BYPASSED,
  type EditorGraph,
  type EditorLink,
  type EditorNode,
  INPUT_NODE,
  invalid,
  MUTED,
  nameOfNode,
} from "./document.js";
import type { Scope } from "./scopes.js";

/** Where a value comes from: a node's output, the file itself, or a node that does not run. */
export type Source =
  | { readonly kind: "output"; readonly id: string; readonly slot: number }
  | { readonly kind: "value"; readonly value: unknown }
  | { readonly kind: "muted" };

/** A place on the way back from an input: a link in a scope. */
interface Place {
  readonly scope: Scope;
  readonly link: string;
}

/** Finds the source of an input of a type through a link; undefined if the way back ends at an open input. */
export type FindSource = (scope: Scope, link: string, type: string) => Source | undefined;

/** Returns a search that walks each link once for each type, even if many inputs share a chain of reroutes. */
export function sourceFinder(): FindSource {
  const memo = new Map<Scope, Map<string, Source | undefined>>();
  const setNodes = setNodesByName();
  const bypass = bypassSlots();
  return (scope, link, type) => {
    const walked: [seen: Map<string, Source | undefined>, key: string][] = [];
    let place: Place | undefined = { scope, link };
    let source: Source | undefined;
    while (place !== undefined) {
      const seen: Map<string, Source | undefined> = memo.get(place.scope) ?? new Map();
      memo.set(place.scope, seen);
      const key = `${place.link} ${type}`;
      if (seen.has(key)) {
        source = seen.get(key);
        break;
      }
      // a chain that comes back here finds nothing, and ends
      seen.set(key, undefined);
      walked.push([seen, key]);
      const next = stepBack(place, type, setNodes, bypass);
      if (next !== undefined && "kind" in next) source = next;
      place = next === undefined || "kind" in next ? undefined : next;
    }
    for (const [seen, key] of walked) seen.set(key, source);
    return source;
  };
}

type SetNodes = (graph: EditorGraph) => ReadonlyMap<unknown, EditorNode>;

/** Nodes that name a value for Get nodes, by that name. */
function setNodesByName(): SetNodes {
  const byGraph = new Map<EditorGraph, Map<unknown, EditorNode>>();
  return (graph) => {
    const found = byGraph.get(graph);
    if (found !== undefined) return found;
    const sets = [...graph.nodes.values()].filter(({ type, mode }) => carrierOf(type) === "set" && mode !== MUTED);
    const byName = new Map(sets.map((node) => [firstValue(node), node]));
    byGraph.set(graph, byName);
    return byName;
  };
}

/** The value of a node that has one: of a primitive, the name of a Set or Get node. */
export const firstValue = ({ values, named }: EditorNode): unknown =>
  named === undefined ? values[0] : Object.hasOwn(named, "value") ? named.value : Object.values(named)[0];

function stepBack(
  { scope, link }: Place,
  type: string,
  setNodes: SetNodes,
  bypass: BypassSlot,
): Place | Source | undefined {
  const found = scope.graph.links.get(link);
  if (found === undefined) return undefined;
  const { origin, originSlot } = found;
  if (origin === INPUT_NODE) return throughInput(scope, originSlot);
  const node = scope.graph.nodes.get(origin);
  if (node === undefined) return undefined;
  const carrier = carrierOf(node.type);
  if (carrier !== undefined) return throughCarrier(scope, node, carrier, setNodes);
  if (node.mode === MUTED) return { kind: "muted" };
  if (node.mode === BYPASSED) return through(scope, node, bypass(node, originSlot, type));
  const inner = scope.inner.get(origin);
  if (inner === undefined) return { kind: "output", id: scope.prefix + origin, slot: originSlot };
  const output = inner.graph.outputLinks.get(originSlot);
  return output === undefined ? undefined : { scope: inner, link: output };
}

function throughInput({ graph, outer, own }: Scope, slot: number): Place | Source | undefined {
  if (outer === undefined) return undefined;
  const { scope } = outer;
  const input = outerInput(outer, graph, slot);
  const widget = input?.widget ?? graph.inputs[slot]?.name;
  const value = widget === undefined ? undefined : own.get(widget);
  if (input?.link !== undefined && (value === undefined || !isOpen(scope, input.link)))
    return { scope, link: input.link };
  return value === undefined ? undefined : { kind: "value", value };
}

/** The input of the node around a subgraph: the file may list them in another order than the subgraph. */
function outerInput({ node, inputs }: NonNullable<Scope["outer"]>, graph: EditorGraph, slot: number) {
  const name = graph.inputs[slot]?.name;
  return node.inputs[slot]?.name === name || name === undefined ? node.inputs[slot] : inputs.get(name);
}

/** Whether a link comes from an input of the subgraph around it without a link and without a value, or is not in the file. */
function isOpen(scope: Scope, link: string): boolean {
  for (let at: Place | undefined = { scope, link }; at !== undefined; ) {
    const found: EditorLink | undefined = at.scope.graph.links.get(at.link);
    const { outer, own, graph }: Scope = at.scope;
    if (found === undefined) return true;
    if (found.origin !== INPUT_NODE || outer === undefined) return false;
    const input = outerInput(outer, graph, found.originSlot);
    const name = input?.widget ?? graph.inputs[found.originSlot]?.name;
    if (name !== undefined && own.has(name)) return false;
    at = input?.link === undefined ? undefined : { scope: outer.scope, link: input.link };
  }
  return true;
}

function throughCarrier(
  scope: Scope,
  node: EditorNode,
  carrier: NonNullable<ReturnType<typeof carrierOf>>,
  setNodes: SetNodes,
): Place | Source | undefined {
  if (carrier === "primitive") {
    const value = firstValue(node);
    return value === undefined || value === null ? undefined : { kind: "value", value };
  }
  if (carrier !== "get") return through(scope, node, 0);
  // a Get node inside a subgraph reads names of the graphs around it too
  for (let at: Scope | undefined = scope; at !== undefined; at = at.outer?.scope) {
    const set = setNodes(at.graph).get(firstValue(node));
    if (set !== undefined) return through(at, set, 0);
  }
  const name = describe(firstValue(node) ?? "");
  throw invalid(`${nameOfNode(node, scope.prefix)} reads ${name}, which no Set node names.`);
}

function through(scope: Scope, node: EditorNode, slot: number): Place | undefined {
  const link = node.inputs[slot]?.link;
  return link === undefined ? undefined : { scope, link };
}

/** Number of the input that a bypassed node passes on: the one with the output's number, else the first of its type. */
type BypassSlot = (node: EditorNode, slot: number, type: string) => number;

function bypassSlots(): BypassSlot {
  const firstOfTypes = new Map<EditorNode, Map<string, number>>();
  return (node, slot, type) => {
    const { inputs } = node;
    if (type === "*") return slot < inputs.length ? slot : 0;
    if (inputs[slot]?.type === type) return slot;
    let first = firstOfTypes.get(node);
    if (first === undefined) {
      // among several inputs of a type the first counts
      first = new Map(inputs.map((input, index) => [input.type, index] as const).reverse());
      firstOfTypes.set(node, first);
    }
    return first.get(type) ?? first.get("*") ?? -1;
  };
}

/** Nodes of the editor that a server does not run: notes, switches of the editor, and those that only carry a link. */
const SILENT: ReadonlySet<string> = new Set([
  "Note",
  "MarkdownNote",
  "Note Plus (mtb)",
  "Bookmark (rgthree)",
  "Label (rgthree)",
  "Fast Muter (rgthree)",
  "Fast Bypasser (rgthree)",
  "Fast Groups Muter (rgthree)",
  "Fast Groups Bypasser (rgthree)",
  "Fast Actions Button (rgthree)",
  "Mute / Bypass Relay (rgthree)",
  "Mute / Bypass Repeater (rgthree)",
  "Node Collector (rgthree)",
  "Random Unmuter (rgthree)",
]);
const CARRIERS: Readonly<Record<string, Carrier>> = {
  Reroute: "reroute",
  "Reroute (rgthree)": "reroute",
  PrimitiveNode: "primitive",
  SetNode: "set",
  "easy setNode": "set",
  GetNode: "get",
  "easy getNode": "get",
};
/** Nodes whose links the editor draws when it queues: the file does not hold them. */
const LINKING: ReadonlySet<string> = new Set([
  "Anything Everywhere",
  "Anything Everywhere?",
  "Anything Everywhere3",
  "Prompts Everywhere",
  "Seed Everywhere",
]);

/** Ways in which a virtual node passes its input on. */
export type Carrier = "reroute" | "primitive" | "set" | "get";

export const carrierOf = (type: string): Carrier | undefined =>
  Object.hasOwn(CARRIERS, type) ? CARRIERS[type] : undefined;

export const isVirtual = (type: string): boolean => SILENT.has(type) || carrierOf(type) !== undefined;

export const linksInvisibly = (type: string): boolean => LINKING.has(type);
