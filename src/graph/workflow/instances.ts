import type { Classes } from "./definitions.js";
import { type EditorGraph, type EditorInput, type EditorNode, INPUT_NODE, refuseMoreInputs } from "./document.js";
import { hasWidget } from "./widgets.js";

type Definitions = ReadonlyMap<string, EditorGraph>;

/**
 * Gives each node that stands for a subgraph all inputs of its definition, whether the file lists them or not, with the
 * widgets that they lead to. Throws graph.invalid beyond 4,000,000 inputs.
 */
export function completeInstances(
  graph: EditorGraph,
  definitions: Definitions,
  classes: Classes,
): { readonly graph: EditorGraph; readonly definitions: Definitions } {
  refuseMoreInputs(countInputs(graph, definitions));
  const leading = leadingToWidgets(definitions, classes);
  const complete = (around: EditorGraph): EditorGraph => {
    const linkOf = linksByTarget(around);
    const nodes = new Map(around.nodes);
    for (const [id, node] of nodes) {
      const inside = subgraphOf(definitions, node.type);
      if (inside === undefined) continue;
      nodes.set(id, { ...node, inputs: inputsOf(node, inside, leading.get(inside) ?? new Set(), linkOf) });
    }
    return { ...around, nodes };
  };
  const completed = new Map([...new Set(definitions.values())].map((inside) => [inside, complete(inside)]));
  return {
    graph: complete(graph),
    definitions: new Map([...definitions].map(([type, inside]) => [type, completed.get(inside)!])),
  };
}

const subgraphOf = (definitions: Definitions, type: string): EditorGraph | undefined => {
  const inside = definitions.get(type);
  return inside?.groupWidgets === undefined ? inside : undefined;
};

function countInputs(graph: EditorGraph, definitions: Definitions): number {
  let count = 0;
  for (const { nodes } of new Set([graph, ...definitions.values()]))
    for (const { type } of nodes.values()) count += subgraphOf(definitions, type)?.inputs.length ?? 0;
  return count;
}

/** Inputs in the file's order where it lists all, else in the definition's. */
function inputsOf(
  { id, inputs }: EditorNode,
  inside: EditorGraph,
  leading: ReadonlySet<string>,
  linkOf: (target: string, slot: number) => string | undefined,
): EditorInput[] {
  const listed = new Map(inputs.map((input) => [input.name, input]));
  const withWidget = (input: EditorInput): EditorInput =>
    input.widget === undefined && leading.has(input.name) ? { ...input, widget: input.name } : input;
  if (inside.inputs.every(({ name }) => listed.has(name))) return inputs.map(withWidget);
  const names = new Set(inside.inputs.map(({ name }) => name));
  const linked = new Set(inputs.map(({ link }) => link));
  return inside.inputs.map(({ name, type }, slot) => {
    const there = inputs[slot];
    // it may have had another name when the file was saved
    const own = listed.get(name) ?? (there !== undefined && !names.has(there.name) ? there : undefined);
    const link = own === undefined ? linkOf(id, slot) : own.link;
    return withWidget({ type, ...own, name, link: own === undefined && linked.has(link) ? undefined : link });
  });
}

function linksByTarget({ links }: EditorGraph): (target: string, slot: number) => string | undefined {
  const byTarget = new Map([...links].map(([id, { target, targetSlot }]) => [`${target} ${targetSlot}`, id]));
  return (target, slot) => byTarget.get(`${target} ${slot}`);
}

/** Names of the inputs of each subgraph that lead to a widget of an inner node, through subgraphs inside too. */
function leadingToWidgets(definitions: Definitions, classes: Classes): Map<EditorGraph, Set<string>> {
  const leading = new Map<EditorGraph, Set<string>>();
  const feeders = new Map<EditorGraph, Map<string, [EditorGraph, string][]>>();
  // grows while it is read
  const found: [inside: EditorGraph, input: string][] = [];
  for (const inside of new Set(definitions.values())) {
    if (inside.groupWidgets !== undefined) continue;
    for (const { origin, originSlot, target, targetSlot } of inside.links.values()) {
      const name = origin === INPUT_NODE ? inside.inputs[originSlot]?.name : undefined;
      const node = inside.nodes.get(target);
      if (name === undefined || node === undefined) continue;
      const input = node.inputs[targetSlot];
      const deeper = subgraphOf(definitions, node.type);
      if (deeper !== undefined) {
        const byName = feeders.get(deeper) ?? new Map<string, [EditorGraph, string][]>();
        const inner = input?.name ?? deeper.inputs[targetSlot]?.name ?? "";
        const outer = byName.get(inner) ?? [];
        outer.push([inside, name]);
        byName.set(inner, outer);
        feeders.set(deeper, byName);
      } else if (input !== undefined && (input.widget !== undefined || hasWidget(classes(node.type), input.name))) {
        found.push([inside, name]);
      }
    }
  }
  for (const [inside, name] of found) {
    const names = leading.get(inside) ?? new Set();
    leading.set(inside, names);
    if (names.has(name)) continue;
    names.add(name);
    for (const feeder of feeders.get(inside)?.get(name) ?? []) found.push(feeder);
  }
  return leading;
}
