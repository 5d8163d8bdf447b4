import { isObject } from "../../base/options.js";
import { inputsOf, isLink, type Prompt, SEED_INPUTS } from "../../graph/parse.js";
import { titleOf } from "../../graph/unknown-classes.js";
import { isPlainObject, NumberLiteral, recall } from "../../io/json/lossless.js";
import type { NodeDefinition } from "../../nodes/define.js";

/** No node id is longer; without a limit, a key of a million dots would be split a million times. */
const MAX_ID_CHARACTERS = 1000;

/** Every node id and input that a key such as "6.text" may mean: both may hold dots themselves. */
export function* readDottedKey(key: string): Generator<{ nodeId: string; input: string }, void, undefined> {
  for (let dot = key.indexOf("."); dot !== -1 && dot <= MAX_ID_CHARACTERS; dot = key.indexOf(".", dot + 1)) {
    yield { nodeId: key.slice(0, dot), input: key.slice(dot + 1) };
  }
}

/** One pair of braces around text without braces: in any text, no character is read more than a few times. */
const PLACEHOLDER = /\{\{([^{}]+)\}\}/g;

/** Keys of the placeholders `{{key}}` in a text, in order, without the blanks around them. */
export function placeholderKeys(text: string): string[] {
  return text.includes("{{") ? Array.from(text.matchAll(PLACEHOLDER), ([, inside]) => keyOf(inside!)) : [];
}

/** Key of a text that is nothing but a placeholder; undefined for any other text. */
export function wholePlaceholder(text: string): string | undefined {
  if (!text.startsWith("{{") || !text.endsWith("}}")) return undefined;
  const inside = text.slice(2, -2);
  return inside === "" || /[{}]/.test(inside) ? undefined : keyOf(inside);
}

/** The text with its placeholders replaced in one pass: placeholders inside a replacement stay. */
export function replacePlaceholders(text: string, replace: (mark: string, key: string) => string): string {
  return text.replace(PLACEHOLDER, (mark, inside: string) => replace(mark, keyOf(inside)));
}

/** A key of only blanks is the last of them. */
const keyOf = (inside: string): string => inside.trim() || inside.at(-1)!;

const PLACEHOLDERS = Symbol("placeholders");

/** Keys of all placeholders below a value. */
export function placeholders(value: unknown): ReadonlySet<string> {
  if (typeof value !== "object" || value === null) return collect(value, new Set());
  return recall(value, PLACEHOLDERS, () => collect(value, new Set()));
}

function collect(value: unknown, keys: Set<string>): Set<string> {
  if (typeof value === "string") for (const key of placeholderKeys(value)) keys.add(key);
  if (Array.isArray(value)) for (const item of value) collect(item, keys);
  else if (isObject(value))
    for (const item of Object.values(value)) for (const key of placeholders(item)) keys.add(key);
  return keys;
}

/** Longer titles are notes, not names. */
const MAX_TITLE_CHARACTERS = 200;

/** The one input of a primitive. */
export const PRIMITIVE_INPUT = "value";
const PRIMITIVE_TYPES: ReadonlySet<string> = new Set(["INT", "FLOAT", "STRING", "BOOLEAN", "*"]);

/** The part of a node's definition that says which values it takes; undefined for an unknown class. */
export type DefinitionOf = (classType: string) => Pick<NodeDefinition, "inputs" | "displayName"> | undefined;

/**
 * Ids of the primitives that carry a title of their author, by title. A primitive is a node whose one input is `value`,
 * a number, a text or a boolean: PrimitiveInt, PrimitiveString and so on. It has no name if another node computes its
 * value or a placeholder stands in it.
 */
export function titledPrimitives(graph: Prompt, definitionOf: DefinitionOf): Map<string, string[]> {
  const nodes = new Map<string, string[]>();
  for (const [nodeId, node] of Object.entries(graph)) {
    const title = isPlainObject(node) ? nameOf(node, definitionOf) : undefined;
    if (title === undefined) continue;
    const same = nodes.get(title);
    if (same === undefined) nodes.set(title, [nodeId]);
    else same.push(nodeId);
  }
  return nodes;
}

/** Ids of the primitives of that title. */
export function nodesTitled(graph: Prompt, title: string, definitionOf: DefinitionOf): string[] {
  const isTitled = (node: unknown) => isPlainObject(node) && titleOf(node)?.trim() === title;
  return Object.entries(graph)
    .filter(([, node]) => isTitled(node) && nameOf(node as Prompt, definitionOf) === title)
    .map(([nodeId]) => nodeId);
}

/** Title that the author of a graph gave a node; undefined if it is the name of its class. */
export function ownTitle(
  node: Prompt,
  definition: Pick<NodeDefinition, "displayName"> | undefined,
): string | undefined {
  const title = titleOf(node)?.trim();
  const isName = title === node.class_type || title === definition?.displayName;
  return title === undefined || isName || title.length > MAX_TITLE_CHARACTERS ? undefined : title;
}

function nameOf(node: Prompt, definitionOf: DefinitionOf): string | undefined {
  const definition = definitionOf(String(node.class_type));
  const names = Object.keys(definition?.inputs ?? {});
  if (names.length !== 1 || names[0] !== PRIMITIVE_INPUT) return undefined;
  if (!PRIMITIVE_TYPES.has(definition!.inputs[PRIMITIVE_INPUT]!.type)) return undefined;
  const value = isPlainObject(node.inputs) ? node.inputs[PRIMITIVE_INPUT] : undefined;
  if (value === undefined || Array.isArray(value)) return undefined;
  if (typeof value === "string" && placeholderKeys(value).length > 0) return undefined;
  return ownTitle(node, definition);
}

/** One input of a graph. */
export interface NamedInput {
  readonly nodeId: string;
  readonly input: string;
}

/** Names of inputs that hold a number, by their common name. */
const NUMBERS: Readonly<Record<string, readonly string[]>> = {
  seed: [...SEED_INPUTS],
  steps: ["steps"],
  width: ["width", "empty_latent_width"],
  height: ["height", "empty_latent_height"],
};
const NUMBER_TYPES: ReadonlySet<string> = new Set(["INT", "FLOAT"]);
/** Far more than any graph has. */
const MAX_LINKS = 1_000_000;
/** Inputs of encoders that hold a text. */
const TEXTS = ["text", "text_g", "text_l", "t5xxl", "clip_l", "prompt"];
/** Inputs of nodes that pass a text on. */
const PASSED = ["value", "text", "string"];
/** Inputs by which a sampler or guider gets a side of its conditioning, or the text itself. */
const SIDES = { prompt: ["positive", "cond1", "conditioning"], negative: ["negative"] } as const;
/** Inputs of nodes that read a text directly, such as those of remote services. */
const OWN_TEXTS = { prompt: ["prompt"], negative: ["negative", "negative_prompt"] } as const;

// They become the key of the input first, so journals and redaction know one name; titles of the same name win.
/** Names that people use for inputs which most graphs have once, with any node id. */
export const COMMON_NAMES: ReadonlySet<string> = new Set([...Object.keys(NUMBERS), ...Object.keys(SIDES)]);

/** The inputs of a graph that a common name may mean, in the order of the graph; none for any other name. */
export function inputsByCommonName(graph: Prompt, name: string, definitionOf: DefinitionOf): NamedInput[] {
  if (Object.hasOwn(NUMBERS, name)) return numbers(graph, NUMBERS[name]!, definitionOf);
  if (name === "prompt") return texts(graph, "prompt", definitionOf);
  if (name !== "negative") return [];
  // a text that both sides share is the prompt
  const positive = new Set(texts(graph, "prompt", definitionOf).map(idOf));
  return texts(graph, "negative", definitionOf).filter((input) => !positive.has(idOf(input)));
}

const idOf = ({ nodeId, input }: NamedInput) => `${nodeId}.${input}`;

/** The primitive whose own value an input gets by a link; undefined if another node computes it. */
export function primitiveBehind(graph: Prompt, link: unknown, definitionOf: DefinitionOf): NamedInput | undefined {
  const inputs = isLink(link) ? inputsOf(graph, link[0]) : undefined;
  if (inputs === undefined || !Object.hasOwn(inputs, PRIMITIVE_INPUT) || Array.isArray(inputs[PRIMITIVE_INPUT]))
    return undefined;
  const [nodeId] = link as readonly [string, unknown];
  const names = Object.keys(definitionOf(classOf(graph, nodeId))?.inputs ?? inputs);
  return names.length === 1 ? { nodeId, input: PRIMITIVE_INPUT } : undefined;
}

/** Numbers that the graph sets, else those of primitives, else those that it leaves at their defaults. */
function numbers(graph: Prompt, names: readonly string[], definitionOf: DefinitionOf): NamedInput[] {
  const found: (NamedInput & { readonly isPresent: boolean })[] = [];
  const passed = new Map<string, NamedInput>();
  for (const nodeId of Object.keys(graph)) {
    const inputs = inputsOf(graph, nodeId) ?? {};
    const declared = definitionOf(classOf(graph, nodeId))?.inputs ?? {};
    for (const input of names) {
      const isPresent = Object.hasOwn(inputs, input);
      const type = Object.hasOwn(declared, input) ? declared[input]!.type : undefined;
      const isNumber = type === undefined ? isNumeric(inputs[input]) : NUMBER_TYPES.has(type);
      const isLinked = isPresent && Array.isArray(inputs[input]);
      const behind = isLinked ? primitiveBehind(graph, inputs[input], definitionOf) : undefined;
      if (behind !== undefined) passed.set(idOf(behind), behind);
      if (isNumber && !isLinked) found.push({ nodeId, input, isPresent });
    }
  }
  const present = found.filter(({ isPresent }) => isPresent);
  if (present.length === 0 && passed.size > 0) return [...passed.values()];
  return (present.length > 0 ? present : found).map(({ nodeId, input }) => ({ nodeId, input }));
}

const isNumeric = (value: unknown): boolean =>
  typeof value === "number" || typeof value === "bigint" || value instanceof NumberLiteral;

/** Texts that a side is encoded from, each once; if there are none, those of inputs with its name. */
function texts(graph: Prompt, side: keyof typeof SIDES, definitionOf: DefinitionOf): NamedInput[] {
  const encoded = new Map<string, NamedInput>();
  const own: NamedInput[] = [];
  const links: unknown[] = [];
  for (const nodeId of Object.keys(graph)) {
    const inputs = inputsOf(graph, nodeId) ?? {};
    const declared = definitionOf(classOf(graph, nodeId))?.inputs ?? {};
    const isText = (input: string) => Object.hasOwn(declared, input) && declared[input]!.type === "STRING";
    for (const input of OWN_TEXTS[side]) if (typeof inputs[input] === "string") own.push({ nodeId, input });
    for (const input of SIDES[side]) {
      if (typeof inputs[input] !== "string" && !isText(input)) links.push(inputs[input]);
      else for (const text of textAt(graph, nodeId, input)) encoded.set(idOf(text), text);
    }
  }
  for (const text of encodedFrom(graph, links, definitionOf)) encoded.set(idOf(text), text);
  return encoded.size > 0 ? [...encoded.values()] : own;
}

/** Texts above links of conditioning. */
function encodedFrom(graph: Prompt, links: readonly unknown[], definitionOf: DefinitionOf): NamedInput[] {
  const found: NamedInput[] = [];
  const seen = new Set<string>();
  const queue = [...links];
  for (let next = 0; next < queue.length && queue.length < MAX_LINKS; next++) {
    const at = queue[next];
    if (!isLink(at) || seen.has(`${at[0]} ${at[1]}`)) continue;
    seen.add(`${at[0]} ${at[1]}`);
    const [nodeId, slot] = at;
    const inputs = inputsOf(graph, nodeId);
    if (inputs === undefined) continue;
    const own = TEXTS.flatMap((input) => textAt(graph, nodeId, input));
    found.push(...own);
    if (own.length > 0) continue;
    const { positive, negative } = inputs;
    // a node with both sides returns them in this order
    if (isLink(positive) && isLink(negative)) queue.push(Number(slot) === 1 ? negative : positive);
    else for (const link of conditioningOf(inputs, definitionOf(classOf(graph, nodeId))?.inputs)) queue.push(link);
  }
  return found;
}

/** The text of an input, or of the node that passes it on. */
function textAt(graph: Prompt, nodeId: string, input: string): NamedInput[] {
  const value = inputsOf(graph, nodeId)?.[input];
  if (typeof value === "string") return [{ nodeId, input }];
  if (!isLink(value)) return [];
  const passed = inputsOf(graph, value[0]) ?? {};
  return PASSED.filter((name) => typeof passed[name] === "string").map((name) => ({ nodeId: value[0], input: name }));
}

/** Links of a node that bring conditioning; all links of a node of unknown class. */
function conditioningOf(inputs: Prompt, declared: NodeDefinition["inputs"] | undefined) {
  return Object.entries(inputs)
    .filter(([input, value]) => {
      const isConditioning = declared === undefined || declared[input]?.type === "CONDITIONING";
      return isConditioning && isLink(value);
    })
    .map(([, value]) => value);
}

const classOf = (graph: Prompt, nodeId: string): string =>
  String((graph[nodeId] as { class_type?: unknown }).class_type);
