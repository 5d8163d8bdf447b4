import { findDefinition, type Graph } from "../../graph/parse.js";
import { isPlainObject, keysInOrder, printJson } from "../../io/json/lossless.js";
import type { Registry } from "../../nodes/registry.js";
import type { Parameter } from "../../render/schema/parameters.js";
import type { PropertySchema } from "../../render/schema/property.js";
import { byRole, type Role, rolesOf } from "./roles.js";

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
    const inputs = isPlainObject(node.inputs) ? node.inputs : {};
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

// decision 347
/**
 * Parameters without the fields that no form needs: those that the graph's author named (`named` has their keys), those
 * with a role, whose titles say it, and the others.
 */
export function shownParameters(
  graph: Graph,
  parameters: readonly Parameter[],
  named: ReadonlySet<string>,
): ShownParameter[] {
  const roles = new Map(rolesOf(graph).map(({ nodeId, input, role }) => [`${nodeId}.${input}`, role]));
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

/** Roles as titles, with their inputs where several have the same. */
function titlesOf(roles: ReadonlyMap<string, Role>): Map<string, string> {
  const counts = new Map<Role, number>();
  for (const role of roles.values()) counts.set(role, (counts.get(role) ?? 0) + 1);
  return new Map([...roles].map(([key, role]) => [key, counts.get(role) === 1 ? role : `${role} (${key})`]));
}

const exact = (value: number | bigint): number | string => (typeof value === "bigint" ? String(value) : value);
