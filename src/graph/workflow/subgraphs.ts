import { describe } from "../../base/errors.js";
import { isPlainObject } from "../../io/json/lossless.js";
import type { NodeDefinition } from "../../nodes/define.js";
import {
  type EditorGraph,
  type EditorInput,
  type EditorLink,
  type EditorNode,
  type GroupWidget,
  INPUT_NODE,
  idOf,
  listed,
  listOf,
  OUTPUT_NODE,
  objectOf,
  outputLinksOf,
  readEditorGraph,
  readNode,
  refuseMoreInputs,
  textOf,
} from "./document.js";
import { hasWidget, listsWidgets, namedWidgets } from "./widgets.js";

export type Classes = (type: string) => NodeDefinition | undefined;

/** The insides of a workflow's subgraphs and group nodes, by the type of the nodes that stand for them. */
export function readDefinitions(
  workflow: Readonly<Record<string, unknown>>,
  classes: Classes,
): Map<string, EditorGraph> {
  const byType = new Map<string, EditorGraph>();
  const subgraphs = objectOf(workflow.definitions).subgraphs;
  for (const entry of listOf(subgraphs ?? [], "subgraphs")) {
    const subgraph = objectOf(entry);
    const id = idOf(subgraph.id);
    if (id !== undefined)
      byType.set(id, readEditorGraph(subgraph, `the subgraph ${describe(textOf(subgraph.name) ?? id)}`));
  }
  for (const [name, group] of Object.entries(objectOf(objectOf(workflow.extra).groupNodes))) {
    if (!isPlainObject(group)) continue;
    const graph = readGroup(group, name, classes);
    for (const separator of ["/", ">"]) byType.set(`workflow${separator}${name}`, graph);
  }
  return byType;
}

/**
 * Reads the inside of a group node as a subgraph. The file writes neither ids, which are places in the list, nor the
 * sockets of the group node: those are the inner nodes' sockets that no inner link reaches, in order.
 */
function readGroup(group: Readonly<Record<string, unknown>>, name: string, classes: Classes): EditorGraph {
  const source = listOf(group.nodes, `nodes of the group node ${describe(name)}`);
  const nodes = source.map((entry, place) => readNode(entry, `the group node ${describe(name)}`, String(place)));
  const config = objectOf(group.config);
  const links = new Map<string, EditorLink>();
  const linkOf = new Map<string, string>();
  const linked = new Set<string>();
  const connect = (origin: string, originSlot: number, target: string, targetSlot: number) => {
    const id = String(links.size);
    links.set(id, { origin, originSlot, target, targetSlot });
    linkOf.set(`${target} ${targetSlot}`, id);
  };
  for (const entry of listed(group.links)) {
    const [origin, originSlot, target, targetSlot] = listed(entry);
    const [from, to] = [idOf(origin), idOf(target)];
    if (from === undefined || to === undefined) continue;
    connect(from, Number(originSlot), to, Number(targetSlot));
    linked.add(`${from} ${Number(originSlot)}`);
  }
  const external = new Set(listed(group.external).map((entry) => `${idOf(listed(entry)[0])} ${listed(entry)[1]}`));
  const groupWidgets: GroupWidget[] = [];
  let [inputs, outputs] = [0, 0];
  for (const node of nodes) {
    const own = objectOf(config[node.id]);
    const isHidden = (input: EditorInput) => objectOf(objectOf(own.input)[input.name]).visible === false;
    const converted = convertedWidgets(node, classes(node.type));
    const sockets = [...node.inputs.keys()].filter((slot) => {
      const input = node.inputs[slot]!;
      return input.widget === undefined || converted.has(input.widget);
    });
    // inputs that were widgets come after the others
    sockets.sort((a, b) => Number(node.inputs[a]!.widget !== undefined) - Number(node.inputs[b]!.widget !== undefined));
    for (const slot of sockets) {
      if (linkOf.has(`${node.id} ${slot}`) || isHidden(node.inputs[slot]!)) continue;
      connect(INPUT_NODE, inputs++, node.id, slot);
    }
    const settings = Object.entries(objectOf(own.input)).map(([widget, input]) => [widget, objectOf(input)] as const);
    const hidden = settings.filter(([, { visible }]) => visible === false).map(([widget]) => widget);
    const labels = new Map(settings.map(([widget, { name }]) => [widget, textOf(name) ?? widget]));
    groupWidgets.push({ node, hidden: new Set([...converted, ...hidden]), labels });
    for (const slot of node.outputs.keys()) {
      const key = `${node.id} ${slot}`;
      const visible = objectOf(objectOf(own.output)[slot]).visible ?? (!linked.has(key) || external.has(key));
      if (visible !== false) connect(node.id, slot, OUTPUT_NODE, outputs++);
    }
  }
  const inside = nodes.map((node): [string, EditorNode] => [
    node.id,
    { ...node, inputs: node.inputs.map((input, slot) => ({ ...input, link: linkOf.get(`${node.id} ${slot}`) })) },
  ]);
  return { nodes: new Map(inside), links, inputs: [], outputLinks: outputLinksOf(links), groupWidgets };
}

/** Widgets that were made inputs: in older files those among the inputs, unless the file lists all widgets there. */
const convertedWidgets = (node: EditorNode, definition: NodeDefinition | undefined): Set<string> =>
  new Set(listsWidgets(node, definition) ? [] : namedWidgets(node).map(({ name }) => name));

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

/** Inputs in the file's order if it lists all, else in the definition's. */
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
