import type { z } from "zod";
import { describe, LatentkitError } from "../../base/errors.js";
import { loadZod } from "../../base/lazy.js";
import { suggest } from "../../base/suggest.js";
import { type Config, configSchema } from "./config-schema.js";
import { mayHoldSecret, shownValue } from "./secrets.js";

export type { Config, ConfigInput } from "./config-schema.js";

/**
 * Checks a configuration and fills in the defaults. `source` names it in messages ("latentkit.yaml"), `frame` says where
 * its reader writes each key. Fails with config.invalid: key, expectation and value, or where a misplaced key belongs.
 */
export function parseConfig(value: unknown, source: string, frame?: Frame): Config {
  const parsed = configSchema().safeParse(value ?? {});
  if (parsed.success) return parsed.data;
  throw new LatentkitError("config.invalid", `${source}: ${configFault(parsed.error, { value, frame })}`);
}

type Path = readonly PropertyKey[];

/** Where a reader writes a path of the configuration, for example below `config` of a function; undefined: nowhere. */
export type Frame = (path: Path) => Path | undefined;

/** Most places that a message names. */
const MOST_PLACES = 3;

/** A value that the schema refused. */
interface Refused {
  readonly value: unknown;
  /** Path of the value in the configuration. */
  readonly at?: Path;
  readonly frame?: Frame;
}

/** The fault of a configuration in one sentence without its end: key, expectation and value, or where an unknown key belongs. */
export function configFault({ issues }: z.core.$ZodError, { value, at = [], frame = (path) => path }: Refused): string {
  // an unknown key is often why a known one is missing
  const { path, ...issue } = narrowed(issues.find(isUnknownKey) ?? issues[0]!);
  const full = [...at, ...path];
  if (issue.code === "unrecognized_keys") return unknownKey(issue.keys[0]!, { full, path, value, frame });
  const key = written(frame(full));
  return `${key === "" ? "" : `"${key}": `}${expectedBy({ ...issue, path } as z.core.$ZodIssue)}, received ${shownValue(valueAt(value, path), full)}.`;
}

const isUnknownKey = ({ code }: z.core.$ZodIssue) => code === "unrecognized_keys";

/** Fault of a value that fits no option of a union, by the option that it nearly fits. */
function narrowed(issue: z.core.$ZodIssue): z.core.$ZodIssue {
  if (issue.code !== "invalid_union") return issue;
  const counts = issue.errors.map((faults) =>
    faults.reduce((sum, fault) => sum + (fault.code === "unrecognized_keys" ? fault.keys.length : 1), 0),
  );
  const [nearest, ...others] = issue.errors.filter((_, option) => counts[option] === Math.min(...counts));
  const fault = nearest?.find(isUnknownKey) ?? nearest?.[0];
  const isOfWhole = fault?.path.length === 0 && !isUnknownKey(fault);
  if (fault === undefined || isOfWhole || others.length > 0) return issue;
  return narrowed({ ...fault, path: [...issue.path, ...fault.path] });
}

interface Place {
  readonly full: Path;
  readonly path: Path;
  readonly value: unknown;
  readonly frame: Frame;
}

/** The name that ends in a key, as hooks_token does in token; the key itself if there is none. */
const longer = (key: string, names: readonly string[]): string => names.find((name) => name.endsWith(`_${key}`)) ?? key;

function unknownKey(key: string, place: Place): string {
  const shown = `unknown key "${written([...(place.frame(place.full) ?? []), shownKey(key, place)])}"`;
  const nested = nestedKey(key, place.full);
  if (nested !== undefined) return `${shown}: expected nested keys, ${nested}.`;
  const places = allPaths().filter((path) => path.at(-1) === key);
  if (places.length > 0) return `${shown}: ${whereIs(places, place)}.`;
  const siblings = keysAt(place.full);
  const { hint } = suggest(longer(key, siblings), siblings, (near) => `"${near}"`);
  if (hint !== "") return `${shown}.${hint}`;
  const elsewhere = new Map(allPaths().map((path) => [path.at(-1)!, written(place.frame(path))]));
  const far = [...elsewhere].filter(([, path]) => path !== "").map(([near]) => near);
  return `${shown}.${suggest(longer(key, far), far, (near) => `"${elsewhere.get(near)}"`).hint}`;
}

// Told before any suggestion by spelling: exact names are misplaced more often than mistyped.
/** Where a misplaced key belongs. */
function whereIs(places: readonly (readonly string[])[], { full, frame }: Place): string {
  const parents = places.slice(0, MOST_PLACES).flatMap((path) => {
    const own = frame(path);
    return own === undefined || own.length === 0 ? [] : [own.slice(0, -1)];
  });
  if (parents.length > 0) {
    const texts = parents.map((parent) => (parent.length === 0 ? "at the top level" : `under "${written(parent)}"`));
    return `it belongs ${texts.join(" or ")}`;
  }
  // `channels: { web: … }` inside its own content
  const isAround = places.some((path) => path.every((key, depth) => key === full[depth]));
  return isAround
    ? `expected the keys of "${full.join(".")}" themselves`
    : `it belongs to the configuration of \`latentkit serve\`, or of startService`;
}

/** How keys are written that stand in one, with dots; undefined if the schema has no such path. */
function nestedKey(key: string, at: Path): string | undefined {
  const keys = key.split(".");
  if (keys.length < 2) return undefined;
  const path = [...at, ...keys];
  const isKnown = allPaths().some(
    (known) => known.length === path.length && known.every((name, i) => name === ANY_NAME || name === path[i]),
  );
  return isKnown ? `${keys.join(": { ")}: … ${"} ".repeat(keys.length - 1)}`.trimEnd() : undefined;
}

/** `{ key:secret }` and `{ secret }` are keys to YAML: a key that may be such a misplaced secret is left out. */
function shownKey(key: string, { full, path, value }: Place): string {
  if (mayHoldSecret(full) && full.length > 0 && valueAt(value, [...path, key]) === null) {
    return key.replace(/(?<![^:=\s])[^:=\s]+$/, "…");
  }
  return key.replace(/[:=\s].*/s, "…");
}

const valueAt = (value: unknown, path: Path): unknown =>
  path.reduce<unknown>((inner, key) => (inner as Record<PropertyKey, unknown> | undefined)?.[key], value);

const written = (path: Path | undefined): string => (path ?? []).map(String).join(".");

/** Beginnings of zod's own sentences; a schema's begin with "expected". */
const ZOD_WORDS = /^(Invalid|Too small|Too big|Unrecognized)/;

const KINDS: Readonly<Record<string, string>> = {
  string: "a text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "an object",
  record: "an object",
  null: "null",
};

/** Returns what a schema expected, in words: "expected a text of at least 16 characters". */
export const expectedBy = (issue: z.core.$ZodIssue): string =>
  ZOD_WORDS.test(issue.message) ? `expected ${wordsFor(issue)}` : issue.message;

function wordsFor(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return KINDS[issue.expected] ?? issue.expected;
    case "invalid_value":
      return oneOf(issue.values.map((value) => describe(value)));
    case "invalid_union":
      return oneOf(
        issue.errors.flatMap(([first]) => (first === undefined ? [] : [expectedBy(first).replace(/^expected /, "")])),
      );
    case "too_small":
      return bounded(issue.origin, `${issue.inclusive === false ? "more than" : "at least"} ${issue.minimum}`);
    case "too_big":
      return bounded(issue.origin, `${issue.inclusive === false ? "less than" : "at most"} ${issue.maximum}`);
    case "invalid_format":
      return issue.format === "url" ? "an address that begins with http: or https:" : "another text";
    default:
      return "another value";
  }
}

function bounded(origin: string, bound: string): string {
  const isOne = bound.endsWith(" 1");
  if (origin === "string") return `a text of ${bound} character${isOne ? "" : "s"}`;
  if (origin === "array") return `a list of ${bound} ${isOne ? "entry" : "entries"}`;
  return `${origin === "int" ? "a whole number" : "a number"} of ${bound}`;
}

const oneOf = (words: readonly string[]): string =>
  words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;

/** Stands for each name that a user chooses, and for each entry of a list. */
const ANY_NAME = "NAME";

/** Keys that an object of the schema may hold at a path; none if it is not an object. */
function keysAt(at: readonly PropertyKey[]): string[] {
  let inner: z.core.$ZodType[] = [unwrap(configSchema())];
  for (const key of at) inner = inner.flatMap((type) => step(type, key));
  return inner.flatMap((type) => Object.keys(shapeOf(type)));
}

/** Paths of all keys of the schema, in its order, the keys of what a user names included. */
function allPaths(schema: z.core.$ZodType = configSchema(), at: readonly string[] = []): string[][] {
  const type = unwrap(schema);
  const { ZodArray, ZodRecord, ZodUnion } = loadZod();
  if (type instanceof ZodUnion) return (type.options as z.core.$ZodType[]).flatMap((option) => allPaths(option, at));
  if (type instanceof ZodArray) return allPaths(type.element, [...at, ANY_NAME]);
  if (type instanceof ZodRecord) return allPaths(type.valueType, [...at, ANY_NAME]);
  return Object.entries(shapeOf(type)).flatMap(([key, inner]) => [[...at, key], ...allPaths(inner, [...at, key])]);
}

/** Dotted paths of all values an environment variable can set, with the type of each. */
export function configLeaves(
  schema: z.core.$ZodType = configSchema(),
  at: string[] = [],
): [string[], z.core.$ZodType][] {
  const type = unwrap(schema);
  if (!(type instanceof loadZod().ZodObject)) return [[at, type]];
  return Object.entries(shapeOf(type)).flatMap(([key, inner]) => configLeaves(inner, [...at, key]));
}

function step(schema: z.core.$ZodType, key: PropertyKey): z.core.$ZodType[] {
  const { ZodArray, ZodRecord, ZodUnion } = loadZod();
  if (schema instanceof ZodArray) return [unwrap(schema.element)];
  if (schema instanceof ZodRecord) return [unwrap(schema.valueType)];
  const shape = shapeOf(schema);
  if (!Object.hasOwn(shape, key)) return [];
  const type = unwrap(shape[key as string]!);
  return type instanceof ZodUnion ? (type.options as z.core.$ZodType[]).map(unwrap) : [type];
}

const shapeOf = (type: z.core.$ZodType): Readonly<Record<string, z.core.$ZodType>> =>
  type instanceof loadZod().ZodObject ? type.shape : {};

function unwrap(schema: z.core.$ZodType): z.core.$ZodType {
  const { ZodDefault, ZodOptional, ZodPipe, ZodObject } = loadZod();
  if (schema instanceof ZodDefault || schema instanceof ZodOptional) return unwrap(schema.unwrap());
  // an object whose keys are renamed
  return schema instanceof ZodPipe && schema.in instanceof ZodObject ? schema.in : schema;
}
