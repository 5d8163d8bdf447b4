import { LatentkitError } from "../../base/errors.js";
import { type ClassAliases, findDefinition, inputsOf, parseGraph } from "../../graph/parse.js";
import { HOSTILE_KEYS, printJson } from "../../io/json/lossless.js";
import type { NodeDefinition } from "../../nodes/define.js";
import type { Registry } from "../../nodes/registry.js";
import { primitiveBehind } from "../fill/keys.js";
import { canonicalKey, inputsOfKey, type KeyInput, type UnknownKey } from "../fill/targets.js";
import { defaultRegistry } from "../surroundings.js";
import type { BatchItem, ItemValues } from "./item.js";

/** Meaning of the keys of a batch's items in its graph. */
export interface GraphKeys {
  /** The inputs that a key gives its whole value to, or why the graph knows no such key. */
  find(key: string): readonly KeyInput[] | UnknownKey;
  /** The key by the node's id if it is a common name ("prompt"); any other key as it is. */
  canonical(key: string): string;
  /** Inputs of these names that are not links, and the primitives behind those that are, in the order of the graph. */
  literals(names: ReadonlySet<string>): readonly KeyInput[];
  /** Inputs with the name of an image file that are not links, in the order of the graph. */
  pictures(): readonly KeyInput[];
}

const TEXT_TYPES: ReadonlySet<string> = new Set(["STRING", "*", ""]);

/** Fails as parseGraph if the graph is wrong. */
export function createGraphKeys(
  graph: unknown,
  { classAliases, registry = defaultRegistry }: { classAliases?: ClassAliases; registry?: Registry } = {},
): GraphKeys {
  const parsed = parseGraph(graph, { classAliases });
  const definitionOf = (type: string) => findDefinition(parsed, type, registry);
  const declaredBy = (nodeId: string): NodeDefinition["inputs"] =>
    definitionOf(String((parsed.prompt[nodeId] as { class_type?: unknown }).class_type))?.inputs ?? {};
  const cached = new Map<string, readonly KeyInput[] | UnknownKey>();
  return {
    find(key) {
      if (HOSTILE_KEYS.has(key)) return { reason: `"${key}" is not allowed as a key.`, isNear: true };
      const inputs = cached.get(key) ?? inputsOfKey(parsed.prompt, key, definitionOf);
      // unknown keys differ from line to line of a hostile file
      if (!("reason" in inputs)) cached.set(key, inputs);
      return inputs;
    },
    canonical: (key) => canonicalKey(parsed.prompt, key, definitionOf),
    literals(names) {
      const literals = new Map<string, KeyInput>();
      for (const nodeId of parsed.ids) {
        const own = inputsOf(parsed.prompt, nodeId) ?? {};
        const declared = declaredBy(nodeId);
        for (const input of names) {
          const type = Object.hasOwn(declared, input) ? declared[input]!.type : "";
          const isLiteral = Object.hasOwn(own, input) && !Array.isArray(own[input]);
          const isDeclared = type === "INT" && !Object.hasOwn(own, input);
          const behind = primitiveBehind(parsed.prompt, own[input], definitionOf) ?? { nodeId, input };
          if (isLiteral || isDeclared || behind.nodeId !== nodeId)
            literals.set(`${behind.nodeId}.${behind.input}`, { ...behind, type });
        }
      }
      return [...literals.values()];
    },
    pictures: () =>
      parsed.ids.flatMap((nodeId) => {
        const own = inputsOf(parsed.prompt, nodeId) ?? {};
        return Object.entries(declaredBy(nodeId))
          .filter(([input, { options }]) => options.image_upload === true && !Array.isArray(own[input]))
          .map(([input, { type }]) => ({ nodeId, input, type }));
      }),
  };
}

/** The inputs of a key that an option names. Fails with usage.invalid for a key that the graph does not know. */
export function requireKey(keys: GraphKeys, key: string, option: string): readonly KeyInput[] {
  const inputs = keys.find(key);
  if (!("reason" in inputs)) return inputs;
  throw new LatentkitError("usage.invalid", `--${option}: ${inputs.reason}`, { suggestion: inputs.suggestion });
}

/** Whether a value may lack digits: one of the inputs takes seeds. */
export const takesSeed = (inputs: readonly KeyInput[]): boolean => inputs.some(({ isSeed }) => isSeed);

/** Whether an empty text can be meant. */
export const takesText = (inputs: readonly KeyInput[]): boolean => inputs.every(({ type }) => TEXT_TYPES.has(type));

/** Keys that items may have beside those of the graph. */
export interface ExtraKeys {
  /** Keys that the name template uses. */
  readonly named?: ReadonlySet<string>;
  /** Whether any others are left out, instead of refused. */
  readonly extraColumns?: boolean;
}

/** Role of an item's key: a value of the graph, a field of the name template, or nothing. */
export type KeyRole =
  | {
      readonly role: "value";
      /** As the batch has it: a common name is the key of the input that it means. */
      readonly key: string;
      readonly inputs: readonly KeyInput[];
    }
  | { readonly role: "field" | "extra" };

/** Reads the keys of a batch's items. */
export interface ItemKeys {
  roleOf(key: string): KeyRole | UnknownKey;
}

/** Keys may differ from line to line. */
const MAX_CACHED = 1000;

// decisions: A misspelt name is an error
export function createItemKeys(keys: GraphKeys, { named = new Set(), extraColumns = false }: ExtraKeys = {}): ItemKeys {
  const cached = new Map<string, KeyRole>();
  const find = (key: string): KeyRole | UnknownKey => {
    const own = keys.canonical(key);
    const inputs = keys.find(own);
    if (!("reason" in inputs)) return { role: "value", key: own, inputs };
    // a key close to an input was meant to set it
    if (inputs.isNear) return inputs;
    if (named.has(key)) return { role: "field" };
    return extraColumns ? { role: "extra" } : inputs;
  };
  return {
    roleOf(key) {
      const role = cached.get(key) ?? find(key);
      if (!("reason" in role) && cached.size < MAX_CACHED) cached.set(key, role);
      return role;
    },
  };
}

/** Fields of an item's names, and the state by which other fields make another item; nothing without any. */
export const withFields = (fields: ItemValues): Pick<BatchItem, "fields" | "state"> =>
  Object.keys(fields).length === 0 ? {} : { fields, state: printJson(fields) };

/** Why a key of a file is refused, and how to allow one meant only for people. */
export const unknownKey = ({ reason, isNear, suggestion }: UnknownKey, key: string): string =>
  isNear || suggestion !== undefined
    ? reason
    : `${reason} Use it in --name as {${key}}, or pass --extra-columns to ignore it.`;
