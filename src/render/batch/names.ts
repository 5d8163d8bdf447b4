import { withoutFormat } from "../../base/controls.js";
import { LatentkitError } from "../../base/errors.js";
import { inputsOf, type Prompt } from "../../graph/parse.js";
import { itemStem } from "../../io/files/item-files.js";
import { nextCounter, resolvePrefix, withSlashes } from "../../io/files/output-path.js";
import { NumberLiteral } from "../../io/json/lossless.js";
import { readDottedKey, replacePlaceholders } from "../fill/keys.js";
import type { ItemValues } from "../items/item.js";

const FIELD = /\{([^{}]+)\}/g;
const OWN_FIELDS: ReadonlySet<string> = new Set(["prefix", "number", "index"]);
/** Longer values would make names that file systems refuse. */
const MAX_VALUE_CHARACTERS = 60;
const MAX_TEMPLATE_CHARACTERS = 100;

// decisions: A published picture keeps a second link until it is recorded
/**
 * Prefixes of the nodes that save, as graph and `set` have them, by node id. Prefixes that come through links are left
 * out.
 */
export function prefixesOf(prompt: Prompt, set: ItemValues = {}): Record<string, string> {
  const prefixes: Record<string, string> = {};
  for (const id of Object.keys(prompt)) {
    const prefix = prefixIn(set, id, inputsOf(prompt, id)?.filename_prefix);
    if (typeof prefix === "string") prefixes[id] = prefix;
  }
  return prefixes;
}

/** The prefix that values set, unchanged, else the node's own with its placeholders filled. */
function prefixIn(values: ItemValues, id: string, own: unknown): unknown {
  const key = `${id}.filename_prefix`;
  if (Object.hasOwn(values, key)) return values[key];
  if (typeof own !== "string") return undefined;
  return replacePlaceholders(own, (mark, key) => (Object.hasOwn(values, key) ? String(values[key]) : mark));
}

/** Number for item 0's names: after those in the folder under the graph's own prefixes, so that a second batch continues. */
export async function firstNumber(outputDir: string, prefixes: Readonly<Record<string, string>>): Promise<number> {
  let first = 1n;
  for (const prefix of Object.values(prefixes)) {
    if (/[%{]/.test(prefix)) continue;
    const { folder, name } = resolvePrefix(outputDir, prefix);
    for (const ending of [".png", "_.png"] as const) {
      const next = await nextCounter(folder, name, ending);
      if (next > first) first = next;
    }
  }
  return first > BigInt(Number.MAX_SAFE_INTEGER) ? 1 : Number(first);
}

/** Fails with usage.invalid for a template that is not a file name. One without {number} and {index} gets the number. */
export function checkTemplate(template: string): string {
  const rest = template.replace(FIELD, "");
  if (
    template === "" ||
    template.length > MAX_TEMPLATE_CHARACTERS ||
    /[\\/:*?"<>|{}\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u.test(rest)
  ) {
    const expected = `a file name of at most ${MAX_TEMPLATE_CHARACTERS} characters with fields such as {prefix}, {number}, {5.seed}`;
    throw new LatentkitError("usage.invalid", `name: expected ${expected}, received ${JSON.stringify(template)}.`);
  }
  return /\{(number|index)\}/.test(template) ? template : `${template}_{number}`;
}

/** Keys of a template's fields, without those that every item has. */
export const templateKeys = (template = ""): ReadonlySet<string> =>
  new Set(Array.from(template.matchAll(FIELD), ([, key]) => key!).filter((key) => !OWN_FIELDS.has(key)));

/** The template with the keys of its fields as `canonical` has them. */
export const canonicalTemplate = (template: string, canonical: (key: string) => string): string =>
  template.replace(FIELD, (_, key: string) => `{${OWN_FIELDS.has(key) ? key : canonical(key)}}`);

/** Values that a template's fields are filled from. */
export interface FieldValues {
  readonly index: number;
  readonly number: number;
  /** Values of the item, and those that all items share. */
  readonly values: ItemValues;
  readonly prompt: Prompt;
}

/** The template with everything but {prefix} filled in. Fails with usage.invalid for a field that neither item nor graph has. */
export function fillTemplate(template: string, { index, number, values, prompt }: FieldValues): string {
  return template.replace(FIELD, (field, key: string) => {
    if (key === "prefix") return field;
    if (key === "number") return String(number).padStart(5, "0");
    if (key === "index") return String(index);
    const value = Object.hasOwn(values, key) ? values[key] : literalOf(prompt, key);
    if (value !== undefined) return inName(value);
    throw unknownField(field);
  });
}

/** Fails with usage.invalid for a field that no item can have; `isPossible` is called with keys that are not literals of the graph. */
export function checkFields(template: string, prompt: Prompt, isPossible: (key: string) => boolean): void {
  for (const [field, key] of template.matchAll(FIELD)) {
    if (!OWN_FIELDS.has(key!) && !isPossible(key!) && literalOf(prompt, key!) === undefined) throw unknownField(field);
  }
}

function unknownField(field: string): LatentkitError {
  const expected = "prefix, number, index, a key of the items or an input such as 5.seed";
  return new LatentkitError("usage.invalid", `name: expected fields ${expected}, received ${field}.`);
}

function literalOf(prompt: Prompt, key: string): unknown {
  for (const { nodeId, input } of readDottedKey(key)) {
    const inputs = inputsOf(prompt, nodeId) ?? {};
    const value = Object.hasOwn(inputs, input) ? inputs[input] : undefined;
    if (value !== undefined && !Array.isArray(value)) return value;
  }
  return undefined;
}

/** A value as a part of a file name: letters, digits and a few marks; any other character becomes "_". */
function inName(value: unknown): string {
  const text = value instanceof NumberLiteral ? value.text : typeof value === "object" ? "" : String(value);
  const safe = text.replace(/[^\p{L}\p{N} ._+-]/gu, "_").replace(/^[. ]+/, "_");
  return [...safe].slice(0, MAX_VALUE_CHARACTERS).join("").trimEnd();
}

/** Beginnings of the names of an item's files, by node id, as far as graph and values determine them. */
export function namesOf(
  prefixes: Readonly<Record<string, string>>,
  values: ItemValues,
  names: { number: number; name?: string },
): Record<string, string> {
  const starts: Record<string, string> = {};
  for (const [id, own] of Object.entries(prefixes)) {
    const prefix = prefixIn(values, id, own);
    if (typeof prefix !== "string") continue;
    const path = withSlashes(withoutFormat(prefix));
    const cut = path.lastIndexOf("/") + 1;
    starts[id] = path.slice(0, cut) + itemStem(names, path.slice(cut));
  }
  return starts;
}
