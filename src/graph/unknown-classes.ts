import { closest, describe, LatentkitError, type UnknownClass } from "../errors.js";
import { isPlainObject } from "../io/json-lossless.js";
import type { Registry } from "../nodes/registry.js";

/** A message that names more classes or nodes is no longer read; how many there are is always told. */
const MAX_CHARACTERS = 4000;
const MAX_CLASSES = 100;
const MAX_IDS = 100;
const MAX_NODES_NAMED = 8;
const MAX_NAME_CHARACTERS = 80;

/** A node whose class the registry does not know. */
export interface UnknownNode {
  readonly id: string;
  /** As the graph has it; anything but a text is wrong, too. */
  readonly classType: unknown;
  readonly title: string | undefined;
}

/** The node's name in the editor, where the graph tells it. */
export function titleOf(node: Readonly<Record<string, unknown>>): string | undefined {
  const meta = node._meta;
  const title = isPlainObject(meta) ? meta.title : undefined;
  return typeof title === "string" && title.trim() !== "" ? title : undefined;
}

/** One error for all nodes of unknown classes, in the order of the graph; there must be one at least. */
export function unknownClassesError(nodes: readonly UnknownNode[], registry: Registry): LatentkitError {
  const first = nodes[0]!;
  const byClass = new Map<string, UnknownNode[]>();
  for (const node of nodes) {
    const name = describe(node.classType);
    const same = byClass.get(name);
    if (same === undefined) byClass.set(name, [node]);
    else same.push(node);
  }
  const unknownClasses: UnknownClass[] = [];
  for (const same of byClass.values()) {
    if (unknownClasses.length === MAX_CLASSES) break;
    const { classType } = same[0]!;
    const suggestion = typeof classType === "string" ? closest(classType, registry.keys()) : undefined;
    const nodeIds = same.slice(0, MAX_IDS).map(({ id }) => short(id));
    unknownClasses.push({ classType: nameOf(classType), count: same.length, nodeIds, suggestion });
  }
  const { suggestion } = unknownClasses[0]!;
  const details = { nodeId: first.id, received: nameOf(first.classType), suggestion, unknownClasses };
  const message = nodes.length === 1 ? oneSentence(first, suggestion) : listOf(nodes.length, byClass, unknownClasses);
  return new LatentkitError("graph.unknown-class", message, details);
}

const nameOf = (classType: unknown): string => (typeof classType === "string" ? short(classType) : describe(classType));

function oneSentence(node: UnknownNode, suggestion: string | undefined): string {
  const hint = suggestion === undefined ? "" : ` Did you mean ${suggestion}?`;
  return `Node ${shownNode(node)}: expected a known class_type, received ${describe(node.classType)}.${hint}`;
}

function listOf(
  count: number,
  byClass: ReadonlyMap<string, readonly UnknownNode[]>,
  classes: readonly UnknownClass[],
): string {
  const classCount = byClass.size === 1 ? "1 class is" : `${byClass.size} classes are`;
  let message = `${count} nodes, ${classCount} not known: `;
  let listed = 0;
  for (const [name, nodes] of byClass) {
    const suggestion = classes[listed]?.suggestion;
    const hint = suggestion === undefined ? "" : `, did you mean ${suggestion}?`;
    const part = `${listed === 0 ? "" : "; "}${name} (${nodeList(nodes)}${hint})`;
    if (listed === classes.length || message.length + part.length > MAX_CHARACTERS) break;
    message += part;
    listed++;
  }
  const more = byClass.size - listed;
  return more === 0 ? `${message}.` : `${message}; and ${more} more.`;
}

function nodeList(nodes: readonly UnknownNode[]): string {
  const named = nodes.slice(0, MAX_NODES_NAMED).map(shownNode);
  const more = nodes.length - named.length;
  return `${nodes.length === 1 ? "node" : "nodes"} ${named.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

const shownNode = ({ id, title }: UnknownNode): string =>
  title === undefined ? short(id) : `${short(id)} ${JSON.stringify(short(title))}`;

const short = (text: string): string =>
  text.length > MAX_NAME_CHARACTERS ? `${text.slice(0, MAX_NAME_CHARACTERS - 3)}...` : text;
