import { printJson } from "../../io/json/lossless.js";
import type { KeyInput, UnknownKey } from "../fill/fill.js";
import type { GraphKeys } from "./graph-keys.js";
import type { BatchItem, ItemValues } from "./item.js";

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

// decision 343
export function createItemKeys(keys: GraphKeys, { named = new Set(), extraColumns = false }: ExtraKeys = {}): ItemKeys {
  const cached = new Map<string, KeyRole>();
  const find = (key: string): KeyRole | UnknownKey => {
    const own = keys.canonical(key);
    const inputs = keys.find(own);
    if (!("reason" in inputs)) return { role: "value", key: own, inputs };
    // what is nearly an input was meant to set it
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

/** Why a key of a file is refused, and how one that is for people alone is allowed. */
export const unknownKey = ({ reason, isNear, suggestion }: UnknownKey, key: string): string =>
  isNear || suggestion !== undefined
    ? reason
    : `${reason} --name may use it as {${key}}; --extra-columns ignores what fits nothing.`;
