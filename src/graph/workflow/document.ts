import { describe, LatentkitError } from "../../base/errors.js";
import { HOSTILE_KEYS, isPlainObject } from "../../io/json/lossless.js";

/** An input of a node in the editor: a socket, or a widget that may take a link. */
export interface EditorInput {
  readonly name: string;
  readonly type: string;
  readonly link?: string;
  /** Name of the widget that the input stands for. */
  readonly widget?: string;
}

export interface EditorNode {
  readonly id: string;
  readonly type: string;
  readonly mode: number;
  readonly title?: string;
  /** Name by which texts such as %KSampler.seed% mean the node. */
  readonly searchName?: string;
  readonly inputs: readonly EditorInput[];
  /** Types of the outputs. */
  readonly outputs: readonly string[];
  /** Values of the widgets in their order; a hole is undefined or null. */
  readonly values: readonly unknown[];
  /** Values of the widgets by name, if the file has them; they take precedence over the order. */
  readonly named?: Readonly<Record<string, unknown>>;
  /** Widgets of nodes inside a subgraph that its node shows: [id of the inner node, name]; -1 is the node itself. */
  readonly promoted: readonly (readonly [id: string, name: string])[];
}

/** From an output to an input, by ids and numbers. */
export interface EditorLink {
  readonly origin: string;
  readonly originSlot: number;
  readonly target: string;
  readonly targetSlot: number;
}

/** A workflow, or the inside of a subgraph or group node. */
export interface EditorGraph {
  readonly nodes: ReadonlyMap<string, EditorNode>;
  readonly links: ReadonlyMap<string, EditorLink>;
  /** Inputs of a subgraph, whose links come from the node INPUT_NODE. */
  readonly inputs: readonly Pick<EditorInput, "name" | "type">[];
  /** Links into the node OUTPUT_NODE, by the number of the subgraph's output. */
  readonly outputLinks: ReadonlyMap<number, string>;
  /** Inner nodes of a group node, in their order: the values of their widgets stand on the group node. */
  readonly groupWidgets?: readonly GroupWidget[];
}

export interface GroupWidget {
  readonly node: EditorNode;
  /** Names of the inner node's widgets that the group node does not show. */
  readonly hidden: ReadonlySet<string>;
  /** Names that the group node shows for widgets instead of their own. */
  readonly labels: ReadonlyMap<string, string>;
}

/** Ids of the nodes that stand for the inputs and outputs of a subgraph. */
export const INPUT_NODE = "-10";
export const OUTPUT_NODE = "-20";

/** Modes of a node that does not run: switched off, and passing its inputs on. */
export const MUTED = 2;
export const BYPASSED = 4;

/** More than any real workflow has. */
const MOST_ENTRIES = 200_000;
/** Inputs and values of all nodes together: a definition with many may stand behind many nodes. */
const MOST_INPUTS = 4_000_000;

type Entries = Readonly<Record<string, unknown>>;

export const invalid = (message: string): LatentkitError => new LatentkitError("graph.invalid", `Workflow: ${message}`);

/** Reads a workflow of the editor or the inside of a subgraph. Throws graph.invalid. */
export function readEditorGraph(source: Entries, name = "the workflow"): EditorGraph {
  const nodes = new Map<string, EditorNode>();
  const read = listOf(source.nodes, `nodes of ${name}`).map((entry) => readNode(entry, name));
  let last = read.reduce((most, { id }) => (Number.isSafeInteger(Number(id)) ? Math.max(most, Number(id)) : most), 0);
  for (const node of read) {
    // links mean the first node of an id; the editor gives the others new ones
    const id = nodes.has(node.id) ? String(++last) : node.id;
    nodes.set(id, { ...node, id });
  }
  const links = new Map<string, EditorLink>();
  for (const entry of listOf(source.links ?? [], `links of ${name}`)) readLink(entry, links, name);
  const inputs = listOf(source.inputs ?? [], `inputs of ${name}`).map((entry) => {
    const input = objectOf(entry);
    return { name: nameOf(input.name), type: textOf(input.type) ?? "*" };
  });
  return { nodes, links, inputs, outputLinks: outputLinksOf(links) };
}

export function outputLinksOf(links: ReadonlyMap<string, EditorLink>): Map<number, string> {
  const byOutput = new Map<number, string>();
  for (const [id, { target, targetSlot }] of links) if (target === OUTPUT_NODE) byOutput.set(targetSlot, id);
  return byOutput;
}

/** Throws graph.invalid for more inputs than all nodes together may have. */
export function refuseMoreInputs(count: number): void {
  if (count > MOST_INPUTS) throw invalid(`expected at most ${MOST_INPUTS} inputs of all nodes, received more.`);
}

/** A node in a message, with a long or odd id or type shortened. */
export const nameOfNode = ({ id, type }: Pick<EditorNode, "id" | "type">, prefix = ""): string =>
  `node ${shown(prefix + id)} (${shown(type)})`;

const shown = (text: string): string => describe(text).slice(1, -1);

/** A list of bounded length, without holes. Throws graph.invalid. */
export function listOf(value: unknown, what: string): readonly unknown[] {
  if (Array.isArray(value) && value.length <= MOST_ENTRIES) return [...value];
  if (Array.isArray(value)) throw invalid(`expected at most ${MOST_ENTRIES} ${what}, received ${value.length}.`);
  throw invalid(`expected the ${what} as a list, received ${describe(value)}.`);
}

/** Reads a node; `place` is its id if the file does not have one. */
export function readNode(entry: unknown, name: string, place?: string): EditorNode {
  if (!isPlainObject(entry)) throw invalid(`expected each node of ${name} as an object, received ${describe(entry)}.`);
  const id = place ?? idOf(entry.id);
  const type = textOf(entry.type);
  if (id === undefined) throw invalid(`expected an id for each node of ${name}, received ${describe(entry.id)}.`);
  if (type === undefined) throw invalid(`node ${shown(id)}: expected a type, received ${describe(entry.type)}.`);
  const properties = objectOf(entry.properties);
  const named = [entry.widgets_values_named, entry.widgets_values].find(
    (values) => isPlainObject(values) && Object.keys(values).length > 0,
  ) as Entries | undefined;
  for (const key of Object.keys(named ?? {})) nameOf(key);
  return {
    id,
    type,
    mode: Number(entry.mode ?? 0),
    title: textOf(entry.title),
    searchName: textOf(properties["Node name for S&R"]),
    inputs: inputsOf(entry.inputs),
    outputs: listed(entry.outputs).map((output) => textOf(objectOf(output).type) ?? "*"),
    values: listed(entry.widgets_values),
    named,
    promoted: listed(properties.proxyWidgets).flatMap((pair) => {
      const [inner, widget] = Array.isArray(pair) ? [idOf(pair[0]), textOf(pair[1])] : [];
      return inner === undefined || widget === undefined ? [] : [[inner, widget] as const];
    }),
  };
}

/** Inputs, each name once: editors of March 2026 saved some of a subgraph's node twice, one of them without its link. */
function inputsOf(inputs: unknown): EditorInput[] {
  const read: EditorInput[] = [];
  const places = new Map<string, number>();
  for (const entry of listed(inputs)) {
    const input = readInput(entry);
    const place = input.name === "" ? undefined : places.get(input.name);
    const { link, widget } = place === undefined ? {} : read[place]!;
    if (place === undefined || (link !== undefined && input.link !== undefined)) {
      places.set(input.name, read.length);
      read.push(input);
    } else read[place] = { ...input, link: link ?? input.link, widget: widget ?? input.widget };
  }
  return read;
}

function readInput(entry: unknown): EditorInput {
  const input = objectOf(entry);
  const name = nameOf(input.name);
  const widget = isPlainObject(input.widget) ? nameOf(input.widget.name, name) : undefined;
  return { name, type: textOf(input.type) ?? "*", link: idOf(input.link), widget };
}

function nameOf(value: unknown, otherwise = ""): string {
  const name = textOf(value) ?? otherwise;
  if (HOSTILE_KEYS.has(name)) throw invalid(`the input name "${name}" is not allowed.`);
  return name;
}

/** Links are lists of six in a workflow, objects in a subgraph and in newer files. */
function readLink(entry: unknown, links: Map<string, EditorLink>, name: string): void {
  // the editor leaves holes for links that were removed
  if (entry === null) return;
  const [id, origin, originSlot, target, targetSlot] = Array.isArray(entry)
    ? entry
    : ["id", "origin_id", "origin_slot", "target_id", "target_slot"].map((key) => objectOf(entry)[key]);
  const [key, from, to] = [idOf(id), idOf(origin), idOf(target)];
  const slots = [Number(originSlot), Number(targetSlot)] as const;
  if (key === undefined || from === undefined || to === undefined || !slots.every(Number.isInteger))
    throw invalid(`expected each link of ${name} from node and output to node and input, received ${describe(entry)}.`);
  links.set(key, { origin: from, originSlot: slots[0], target: to, targetSlot: slots[1] });
}

/** A list that may be absent, without holes. */
export const listed = (value: unknown): readonly unknown[] => (Array.isArray(value) ? [...value] : []);

export const objectOf = (value: unknown): Entries => (isPlainObject(value) ? value : {});

export const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

/** Ids are numbers, or texts in copied parts. */
export const idOf = (value: unknown): string | undefined =>
  typeof value === "number" || typeof value === "string" ? String(value) : undefined;
