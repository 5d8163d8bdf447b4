import { findDefinition, type Graph } from "../../graph/parse.js";
import { isPlainObject, keysInOrder, printJson } from "../../io/json/lossless.js";
import type { Registry } from "../../nodes/registry.js";
import { PRIMITIVE_INPUT } from "../../render/fill/keys.js";
import type { Parameter } from "../../render/schema/graph-schema.js";
import type { PropertySchema } from "../../render/schema/property.js";

/** Most nodes that are drawn. */
const MOST_NODES = 2000;
/** Characters of a value that are shown. */
const MOST_CHARACTERS = 4000;

/** A node as the page draws it. */
export interface ShownNode {
  readonly id: string;
  readonly type: string;
  readonly title: string;
  /** Whether this version of latentkit has the class. */
  readonly is_known: boolean;
  readonly inputs: readonly ShownInput[];
  readonly outputs: readonly { readonly name: string; readonly type: string }[];
}

/** An input holds a value, as text, or the output of another node. */
interface ShownInput {
  readonly name: string;
  readonly value?: string;
  readonly from?: { readonly node: string; readonly output: number };
}

/** A parameter of a graph as a form shows it; numbers that JavaScript would round are texts. */
export type ShownParameter = Omit<PropertySchema<number | string>, "title"> & {
  readonly key: string;
  readonly title: string;
  readonly required: boolean;
  /** A placeholder or titled primitive, which the graph's author named. */
  readonly named: boolean;
  /** Use of the input; absent for those that few people change. */
  readonly role?: Role;
};

/** Nodes of a graph, 2,000 at most, with every digit of their numbers. */
export function shownNodes(graph: Graph, registry: Registry): ShownNode[] {
  const shown = graph.ids.slice(0, MOST_NODES);
  const known = new Set(shown);
  return shown.map((id) => {
    const node = graph.prompt[id] as Readonly<Record<string, unknown>>;
    const type = String(node.class_type);
    const definition = findDefinition(graph, type, registry);
    const meta = isPlainObject(node._meta) ? node._meta : {};
    const inputs = inputsOf(node);
    return {
      id,
      type,
      title: typeof meta.title === "string" && meta.title !== "" ? cut(meta.title) : (definition?.displayName ?? type),
      is_known: definition !== undefined,
      inputs: keysInOrder(inputs).map((name) => shownInput(name, inputs[name], known)),
      outputs: (definition?.outputs ?? []).map(({ name, type }) => ({ name, type })),
    };
  });
}

function shownInput(name: string, value: unknown, known: ReadonlySet<string>): ShownInput {
  if (Array.isArray(value) && value.length === 2 && known.has(String(value[0]))) {
    return { name, from: { node: String(value[0]), output: Number(value[1]) } };
  }
  return { name, value: cut(typeof value === "string" ? value : printJson(value)) };
}

const cut = (text: string) => (text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text);

// Prompts are found by a sampler's links, not by titles, which many graphs do not have.
/**
 * Parameters without the fields that no form needs: those that the graph's author named (`named` has their keys), those
 * with a role, whose titles say it, and the others.
 */
export function shownParameters(
  graph: Graph,
  parameters: readonly Parameter[],
  named: ReadonlySet<string>,
): ShownParameter[] {
  const roles = new Map(rolesOf(graph).map((one) => [keyOf(one), one.role]));
  const titles = titlesOf(roles);
  return parameters
    .map(({ key, isRequired, property }) => {
      const { minimum, maximum, default: fallback, ...rest } = property;
      const role = roles.get(key);
      return {
        key,
        required: isRequired,
        named: named.has(key),
        ...rest,
        ...(role !== undefined && { role, title: titles.get(key)! }),
        ...(minimum !== undefined && { minimum: exact(minimum) }),
        ...(maximum !== undefined && { maximum: exact(maximum) }),
        ...(fallback !== undefined && { default: typeof fallback === "bigint" ? String(fallback) : fallback }),
      };
    })
    .sort((a, b) => Number(b.named) - Number(a.named) || (a.named ? 0 : byRole(a.role, b.role)));
}

/** Roles as titles, with their inputs if several have the same. */
function titlesOf(roles: ReadonlyMap<string, Role>): Map<string, string> {
  const counts = countsOf([...roles.values()]);
  return new Map([...roles].map(([key, role]) => [key, counts.get(role) === 1 ? role : `${role} (${key})`]));
}

const exact = (value: number | bigint): number | string => (typeof value === "bigint" ? String(value) : value);

/** Uses of the inputs that people change most, in the order in which a form shows them. */
const ROLES = [
  "Prompt",
  "Positive prompt",
  "Negative prompt",
  "Seed",
  "Steps",
  "CFG",
  "Sampler",
  "Scheduler",
  "Denoise",
  "Width",
  "Height",
  "Model",
] as const;
type Role = (typeof ROLES)[number];

const BY_INPUT: ReadonlyMap<string, Role> = new Map([
  ["seed", "Seed"],
  ["noise_seed", "Seed"],
  ["steps", "Steps"],
  ["cfg", "CFG"],
  ["sampler_name", "Sampler"],
  ["scheduler", "Scheduler"],
  ["denoise", "Denoise"],
  ["ckpt_name", "Model"],
  ["unet_name", "Model"],
]);
const SIZES: ReadonlyMap<string, Role> = new Map([
  ["width", "Width"],
  ["height", "Height"],
  ["empty_latent_width", "Width"],
  ["empty_latent_height", "Height"],
]);
const SIDES = ["positive", "negative"] as const;
const TEXTS = ["text", "text_g", "text_l", "t5xxl", "clip_l", "prompt", "value", "string"] as const;
/** Far more than conditioning passes through. */
const MOST_VISITED = 10_000;

type Inputs = Readonly<Record<string, unknown>>;

/** An input with a value and a role. */
export interface RoleInput {
  readonly nodeId: string;
  readonly input: string;
  readonly role: Role;
}

/**
 * Inputs that hold values and have a role, in the order of the roles; the value may stand in a primitive. A role that
 * several inputs have is left out, but for prompts, and so is a primitive with several roles.
 */
export function rolesOf(graph: Graph): RoleInput[] {
  const inputs = new Map(graph.ids.map((id) => [id, inputsOf(graph.prompt[id])]));
  const found = [...inputs].flatMap(([nodeId, own]) => settingsOf(nodeId, own, inputs));
  // two samplers may read one primitive
  const settings = [...new Map(found.map((one) => [`${one.role} ${keyOf(one)}`, one])).values()];
  const roles = countsOf(settings.map(({ role }) => role));
  const uses = countsOf(settings.map(keyOf));
  const single = settings.filter((one) => roles.get(one.role) === 1 && uses.get(keyOf(one)) === 1);
  return [...promptsOf(inputs), ...single].sort((a, b) => byRole(a.role, b.role));
}

const keyOf = ({ nodeId, input }: Omit<RoleInput, "role">): string => `${nodeId}.${input}`;

function countsOf(words: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return counts;
}

/** Sorts by the order of the roles; entries without a role come last. */
const byRole = (a: Role | undefined, b: Role | undefined): number => placeOf(a) - placeOf(b);

const placeOf = (role: Role | undefined) => (role === undefined ? ROLES.length : ROLES.indexOf(role));

/** Inputs of a node of a graph; none if it is not one. */
export const inputsOf = (node: unknown): Inputs =>
  isPlainObject(node) && isPlainObject(node.inputs) ? node.inputs : {};

type Link = readonly [node: string, output: unknown];

const isLink = (value: unknown): value is Link =>
  Array.isArray(value) && value.length === 2 && typeof value[0] === "string";

function settingsOf(nodeId: string, inputs: Inputs, all: ReadonlyMap<string, Inputs>): RoleInput[] {
  // others that have a width resize or crop
  const isSize = Object.keys(inputs).includes("batch_size");
  return Object.entries(inputs).flatMap(([input, value]): RoleInput[] => {
    const role = BY_INPUT.get(input) ?? (isSize ? SIZES.get(input) : undefined);
    if (role === undefined) return [];
    if (!isLink(value)) return [{ nodeId, input, role }];
    return isPrimitive(all.get(value[0])) ? [{ nodeId: value[0], input: PRIMITIVE_INPUT, role }] : [];
  });
}

/** Whether the one input of a node is `value`, which holds it. */
const isPrimitive = (inputs: Inputs = {}): boolean =>
  Object.keys(inputs).join() === PRIMITIVE_INPUT && !isLink(inputs[PRIMITIVE_INPUT]);

/** Texts that reach a sampler's sides; one that reaches both is a prompt. */
function promptsOf(inputs: ReadonlyMap<string, Inputs>): RoleInput[] {
  const found = new Map<string, RoleInput>();
  for (const side of SIDES) {
    const own = side === "positive" ? "Positive prompt" : "Negative prompt";
    for (const [nodeId, input] of textsOf(inputs, side)) {
      const key = keyOf({ nodeId, input });
      found.set(key, { nodeId, input, role: found.has(key) ? "Prompt" : own });
    }
  }
  return [...found.values()];
}

/** Texts that links lead to from all inputs of a side, each once. */
function textsOf(
  inputs: ReadonlyMap<string, Inputs>,
  side: (typeof SIDES)[number],
): (readonly [nodeId: string, input: string])[] {
  const found: (readonly [string, string])[] = [];
  const links: Link[] = [];
  for (const [id, own] of inputs) {
    const value = own[side];
    if (typeof value === "string") found.push([id, side]);
    else if (isLink(value)) links.push(value);
  }
  const seen = new Set<string>();
  const read = new Set<string>();
  for (const [id, output] of links) {
    const own = inputs.get(id);
    if (own === undefined || seen.has(`${id} ${output}`) || seen.size >= MOST_VISITED) continue;
    seen.add(`${id} ${output}`);
    const names = TEXTS.filter((name) => own[name] !== undefined);
    if (!read.has(id))
      found.push(...names.filter((name) => typeof own[name] === "string").map((name) => [id, name] as const));
    read.add(id);
    links.push(...linksFrom(own, names, output));
  }
  return found;
}

function linksFrom(inputs: Inputs, texts: readonly string[], output: unknown): Link[] {
  if (texts.length > 0) return texts.map((name) => inputs[name]).filter(isLink);
  const sides = SIDES.map((name) => inputs[name]);
  // a node with both sides returns them in this order
  return (sides.every(isLink) ? [sides[Number(output) === 1 ? 1 : 0]] : Object.values(inputs)).filter(isLink);
}
