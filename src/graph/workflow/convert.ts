import type { NodeDefinition } from "../../nodes/define.js";
import type { Registry } from "../../nodes/registry.js";
import { filledPrefix, PREFIX, prefixWarnings, type WidgetLookup } from "../prefixes.js";
import { neededBy } from "../topology.js";
import { ggufOf, type UnknownNode, unknownClassesError } from "../unknown-classes.js";
import {
  BYPASSED,
  type EditorGraph,
  type EditorNode,
  invalid,
  MUTED,
  nameOfNode,
  readEditorGraph,
} from "./document.js";
import { carrierOf, firstValue, isVirtual, linksInvisibly, sourceFinder } from "./links.js";
import { openScopes, type Scope } from "./scopes.js";
import { type Classes, completeInstances, readDefinitions } from "./subgraphs.js";
import { hasWidget, namesValues, widgetValues } from "./widgets.js";

/** Receives a sentence about a node, and the node's id if it is in the converted graph. */
export type OnWarning = (message: string, nodeId?: string) => void;

/** Context of a conversion. */
export interface Conversion {
  readonly classes: Classes;
  /** Keys of all classes, for suggestions. */
  readonly registry: Registry;
  /** Time that %date:…% in a prefix of file names stands for. */
  readonly now: Date;
  /** Nodes to compute: of a node that they do not need, the file need not name the widgets. */
  readonly targets?: readonly string[];
  readonly onWarning?: OnWarning;
}

export interface ApiNode {
  inputs: Record<string, unknown>;
  class_type: string;
  _meta: { title: string };
}

// A widget fed by a muted node is missing afterwards, as in the editor; one fed by a bypassed node keeps its value.
/**
 * Converts a workflow as the editor saves it to a graph in API format, as the editor does when it queues one. Throws
 * graph.invalid, which names the node, its type and the reason, and graph.unknown-class, which names all unknown classes
 * if the widgets of one are not known.
 */
export function toApiGraph(
  workflow: Readonly<Record<string, unknown>>,
  { classes, registry, now, targets, onWarning }: Conversion,
): Record<string, ApiNode> {
  const { graph: root, definitions } = completeInstances(
    readEditorGraph(workflow),
    readDefinitions(workflow, classes),
    classes,
  );
  const scopes = openScopes(root, definitions, classes);
  const findSource = sourceFinder();
  const linked = once(linkedNodes);
  const lookups = createLookups(scopes, classes);
  const entries: [string, ApiNode, links: [input: string, id: string][]][] = [];
  const unknown: UnknownNode[] = [];
  const unnamed: string[] = [];
  for (const scope of scopes) {
    for (const node of scope.graph.nodes.values()) {
      const id = scope.prefix + node.id;
      if (isVirtual(node.type) || node.mode === MUTED || node.mode === BYPASSED || scope.inner.has(node.id)) continue;
      if (linksInvisibly(node.type)) {
        const reason =
          "its links are drawn by the editor and are not in the file; link the nodes, or export it in API format";
        throw invalid(`${nameOfNode(node, scope.prefix)} cannot be converted: ${reason}.`);
      }
      const definition = classes(node.type);
      if (definition === undefined && !linked(scope.graph).has(node.id)) {
        onWarning?.(
          `Workflow: ${nameOfNode(node, scope.prefix)} is left out: its class is unknown, and nothing is linked to it.`,
        );
        continue;
      }
      if (definition === undefined) {
        const gguf = ggufOf([...node.values, ...Object.values(node.named ?? {})]);
        unknown.push({ id, classType: node.type, title: node.title, gguf });
      }
      if (!namesValues(node, definition)) unnamed.push(id);
      const inputs: Record<string, unknown> = {};
      const links: [string, string][] = [];
      const queued = (name: string, value: unknown) => {
        if (typeof value !== "string") return literal(value);
        if (name === PREFIX && isSaving(node.type)) return filledPrefix(value, lookups(scope), now);
        return isPrompt(node.type, name, definition) ? firstAlternatives(value) : value;
      };
      for (const [name, value] of valuesIn(scope, node, classes)) inputs[name] = queued(name, value);
      for (const { name, type, link } of node.inputs) {
        const source = link === undefined ? undefined : findSource(scope, link, type);
        if (source === undefined) continue;
        if (source.kind === "muted") delete inputs[name];
        else if (source.kind === "value") inputs[name] = queued(name, source.value);
        else {
          inputs[name] = [source.id, source.slot];
          links.push([name, source.id]);
        }
      }
      for (const message of prefixWarnings(inputs[PREFIX]))
        onWarning?.(`Workflow: ${nameOfNode(node, scope.prefix)}, ${message}`, id);
      const title = node.title ?? definition?.displayName ?? node.type;
      entries.push([id, { inputs, class_type: node.type, _meta: { title } }, links]);
    }
  }
  const graph: Record<string, ApiNode> = Object.fromEntries(entries.map(([id, node]) => [id, node]));
  const needed = targets && neededBy({ prompt: graph }, targets);
  if (unnamed.some((id) => needed?.has(id) ?? true)) throw unknownClassesError(unknown, registry, unnamed);
  for (const [, { inputs }, links] of entries)
    for (const [name, id] of links) if (!Object.hasOwn(graph, id)) delete inputs[name];
  return graph;
}

/** Lists would be read as links. */
const literal = (value: unknown): unknown => (Array.isArray(value) ? { __value__: value } : value);

/** Names of the classes whose prefixes the editor fills. */
const isSaving = (type: string): boolean => type.startsWith("Save") || type.endsWith("Save");

/** Whether a text is a prompt with alternatives and comments. */
const isPrompt = (type: string, name: string, definition: NodeDefinition | undefined): boolean =>
  definition === undefined
    ? type.startsWith("CLIPTextEncode") || type.startsWith("TextEncode")
    : Object.hasOwn(definition.inputs, name) && definition.inputs[name]!.options.dynamicPrompts === true;

/** Values of a node's widgets, or those that a subgraph's node holds instead. */
function valuesIn({ shown }: Scope, node: EditorNode, classes: Classes): Map<string, unknown> {
  const definition = classes(node.type);
  const values = widgetValues(node, definition);
  for (const [name, value] of shown.get(node.id) ?? [])
    if (values.has(name) || hasWidget(definition, name)) values.set(name, value);
  return values;
}

/**
 * Makes the lookup of widgets for a prefix in a scope: by the search name of a node, else by its title, in the scope, else
 * in the workflow, else in any subgraph. Muted nodes and notes count.
 */
function createLookups(scopes: readonly Scope[], classes: Classes): (scope: Scope) => WidgetLookup {
  const namesIn = (places: readonly Scope[]): Names => {
    const [bySearchName, byTitle]: [Names, Names] = [new Map(), new Map()];
    for (const scope of places) {
      for (const node of scope.graph.nodes.values()) {
        const { type, searchName = type, title = classes(type)?.displayName ?? type } = node;
        if (!bySearchName.has(searchName)) bySearchName.set(searchName, { scope, node });
        if (!byTitle.has(title)) byTitle.set(title, { scope, node });
      }
    }
    return new Map([...byTitle, ...bySearchName]);
  };
  const inScope = once((scope: Scope) => namesIn([scope]));
  const anywhere = once((_: readonly Scope[]) => namesIn(scopes));
  return (scope) => (name, widget) => {
    const found = inScope(scope).get(name) ?? inScope(scopes[0]!).get(name) ?? anywhere(scopes).get(name);
    if (found === undefined) return undefined;
    if (carrierOf(found.node.type) === "primitive" && widget === "value") return firstValue(found.node);
    return valuesIn(found.scope, found.node, classes).get(widget);
  };
}

/** The first node of each name. */
type Names = Map<string, { readonly scope: Scope; readonly node: EditorNode }>;

const linkedNodes = ({ links }: EditorGraph): ReadonlySet<string> =>
  new Set([...links.values()].flatMap(({ origin, target }) => [origin, target]));

/** Computes a function of an object once. */
function once<Key extends object, Value>(compute: (key: Key) => Value): (key: Key) => Value {
  const computed = new Map<Key, Value>();
  return (key) => {
    if (!computed.has(key)) computed.set(key, compute(key));
    return computed.get(key)!;
  };
}

/**
 * Text of a prompt as the editor queues it: without comments, with one alternative of each {a|b}. The editor draws it at
 * random; here it is the first, so that one file gives one picture. A backslash before a brace or bar keeps it.
 */
function firstAlternatives(text: string): string {
  const source = withoutComments(text);
  let chosen = "";
  // for each open brace, whether its first alternative continues
  const open: boolean[] = [];
  let skipped = 0;
  for (let at = 0; at < source.length; at++) {
    const character = source[at]!;
    if (character === "\\") {
      const next = source[++at] ?? "";
      if (skipped === 0) chosen += isMark(next) ? next : character + next;
    } else if (character === "{") {
      open.push(true);
    } else if (character === "}" && open.length > 0) {
      if (open.pop() === false) skipped--;
    } else if (character === "|" && open.length > 0) {
      if (open.at(-1)) skipped++;
      open[open.length - 1] = false;
    } else if (skipped === 0) {
      chosen += character;
    }
  }
  return chosen;
}

const isMark = (character: string): boolean => character === "{" || character === "}" || character === "|";

/** Removes block comments, and line comments after two slashes. */
function withoutComments(text: string): string {
  let kept = "";
  for (let at = 0; ; ) {
    const start = text.indexOf("/", at);
    if (start < 0) return kept + text.slice(at);
    const mark = text[start + 1];
    const end = mark === "/" ? lineEnd(text, start) : mark === "*" ? blockEnd(text, start) : start + 1;
    kept += text.slice(at, mark === "/" || (mark === "*" && end > start + 1) ? start : end);
    at = end;
  }
}

function lineEnd(text: string, start: number): number {
  const end = text.indexOf("\n", start);
  return end < 0 ? text.length : end;
}

/** End of a block, or the next character if it is never closed. */
function blockEnd(text: string, start: number): number {
  const end = text.indexOf("*/", start + 2);
  return end < 0 ? start + 1 : end + 2;
}
