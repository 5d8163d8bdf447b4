import { describe, LatentkitError, quoted, type UnknownClass } from "../base/errors.js";
import { suggest } from "../base/suggest.js";
import { ggufFamily, isGguf } from "../host/foreign-families.js";
import { isPlainObject } from "../io/json/lossless.js";
import type { Registry } from "../nodes/registry.js";

/** Limits of a readable message; it always has the number of all nodes and classes. */
const MAX_CHARACTERS = 4000;
const MAX_CLASSES = 100;
const MAX_IDS = 100;
const MAX_NODES_NAMED = 8;
const MAX_NAME_CHARACTERS = 80;

// All unknown classes are one error; beyond three edits a suggestion would be a different node.
/** A node whose class the registry does not know. */
export interface UnknownNode {
  readonly id: string;
  /** Value in the graph, which need not be a text. */
  readonly classType: unknown;
  readonly title: string | undefined;
  /** Name of a GGUF file among its inputs. */
  readonly gguf: string | undefined;
}

/** Title of the node in the editor, if the graph has it. */
export function titleOf(node: Readonly<Record<string, unknown>>): string | undefined {
  const meta = node._meta;
  const title = isPlainObject(meta) ? meta.title : undefined;
  return typeof title === "string" && title.trim() !== "" ? title : undefined;
}

/** Name of a GGUF file among a node's values; undefined if there is none. */
export const ggufOf = (values: readonly unknown[]): string | undefined =>
  values.find((value): value is string => typeof value === "string" && isGguf(value));

/**
 * Makes one error for all nodes of unknown classes, in the order of the graph; the list must not be empty. `unnamed`: ids
 * of nodes of a workflow that cannot be converted, since its file does not name their widgets.
 */
export function unknownClassesError(
  nodes: readonly UnknownNode[],
  registry: Registry,
  unnamed: readonly string[] = [],
): LatentkitError {
  const first = nodes[0]!;
  const byClass = new Map<string, UnknownNode[]>();
  for (const node of nodes) {
    const name = describe(node.classType);
    const ofClass = byClass.get(name);
    if (ofClass === undefined) byClass.set(name, [node]);
    else ofClass.push(node);
  }
  const unknownClasses: UnknownClass[] = [];
  for (const ofClass of byClass.values()) {
    if (unknownClasses.length === MAX_CLASSES) break;
    const { classType } = ofClass[0]!;
    const { suggestion } = suggest(classType, registry.keys());
    const nodeIds = ofClass.slice(0, MAX_IDS).map(({ id }) => short(id));
    unknownClasses.push({ classType: nameOf(classType), count: ofClass.length, nodeIds, suggestion });
  }
  const { suggestion } = unknownClasses[0]!;
  const details = { nodeId: first.id, received: nameOf(first.classType), suggestion, unknownClasses };
  const foreign = nodes.filter(({ gguf }) => gguf !== undefined).slice(0, MAX_NODES_NAMED);
  const files = foreign.map(({ id, gguf }) => `${ggufFamily(gguf!)} (node ${idOf(id)}, ${idOf(gguf!)}: GGUF)`);
  const cannot = files.length === 0 ? "" : `The graph cannot run here: ${files.join(", ")}. `;
  const list = nodes.length === 1 ? oneSentence(first, registry) : listOf(nodes.length, byClass, unknownClasses);
  const advice = nodes.length > 1 ? DEFINE_ALL : suggestion === undefined ? DEFINE_ONE : "";
  const message = unnamed.length === 0 ? cannot + list + advice : `Workflow: ${cannot}${list} ${unconverted(unnamed)}`;
  return new LatentkitError("graph.unknown-class", message, details);
}

const DEFINE_ONE =
  " Define it with defineNode and pass your registry, remove the node, or name targets that do not need it.";
const DEFINE_ALL =
  " Define unknown classes with defineNode and pass your registry, remove their nodes, or name targets that do not need them.";

const nameOf = (classType: unknown): string => (typeof classType === "string" ? short(classType) : describe(classType));

function oneSentence(node: UnknownNode, registry: Registry): string {
  const { hint } = suggest(node.classType, registry.keys());
  return `Node ${labelOf(node)}: expected a known class_type, received ${describe(node.classType)}.${hint}`;
}

function listOf(
  count: number,
  byClass: ReadonlyMap<string, readonly UnknownNode[]>,
  classes: readonly UnknownClass[],
): string {
  const classCount = byClass.size === 1 ? "1 unknown class" : `${byClass.size} unknown classes`;
  let message = `${count} nodes have ${classCount}: `;
  let listed = 0;
  for (const [name, nodes] of byClass) {
    const suggestion = classes[listed]?.suggestion;
    const hint = suggestion === undefined ? "" : `, did you mean ${suggestion}?`;
    const part = `${listed === 0 ? "" : "; "}${name} (${nodeList(nodes.map(labelOf))}${hint})`;
    if (listed === classes.length || message.length + part.length > MAX_CHARACTERS) break;
    message += part;
    listed++;
  }
  const more = byClass.size - listed;
  return more === 0 ? `${message}.` : `${message}; and ${more} more.`;
}

function unconverted(ids: readonly string[]): string {
  const list = nodeList(ids.map(idOf));
  return `The file does not name the widgets of ${list}: define these classes, save the workflow again in an editor that has them, export it in API format, or name targets that do not need them.`;
}

/** Says that nodes are left out of a run with targets; the list must not be empty. */
export function leftOutNote(nodes: readonly UnknownNode[]): string {
  const list = nodeList(nodes.map(({ id, classType }) => `${idOf(id)} (${idOf(nameOf(classType))})`));
  const why = nodes.length === 1 ? "is left out: its class is unknown" : "are left out: their classes are unknown";
  return `Graph: ${list} ${why}, and no target needs ${nodes.length === 1 ? "it" : "them"}.`;
}

function nodeList(labels: readonly string[]): string {
  const named = labels.slice(0, MAX_NODES_NAMED);
  const more = labels.length - named.length;
  return `${labels.length === 1 ? "node" : "nodes"} ${named.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

const labelOf = ({ id, title }: UnknownNode): string =>
  title === undefined ? idOf(id) : `${idOf(id)} ${quoted(short(title))}`;

const idOf = (id: string): string => quoted(short(id)).slice(1, -1);

const short = (text: string): string =>
  text.length > MAX_NAME_CHARACTERS ? `${text.slice(0, MAX_NAME_CHARACTERS - 3)}...` : text;
