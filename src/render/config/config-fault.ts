import type { z } from "zod";
import { suggest } from "../../base/errors.js";
import { expectedBy } from "./expected-by.js";
import { ANY_NAME, allPaths, keysAt } from "./schema-paths.js";
import { mayHoldSecret, shownValue } from "./secrets.js";

type Path = readonly PropertyKey[];

/** Where a reader writes a path of the configuration: below `config` of a function, say; undefined: nowhere. */
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
  // an unknown key is often the reason why a known one is missing
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

function unknownKey(key: string, place: Place): string {
  const shown = `unknown key "${written([...(place.frame(place.full) ?? []), shownKey(key, place)])}"`;
  const nested = nestedKey(key, place.full);
  if (nested !== undefined) return `${shown}: expected keys in each other, ${nested}.`;
  const places = allPaths().filter((path) => path.at(-1) === key);
  if (places.length > 0) return `${shown}: ${whereIs(places, place)}.`;
  const siblings = keysAt(place.full);
  const { hint } = suggest(key, siblings, (near) => `"${near}"`);
  if (hint !== "") return `${shown}.${hint}`;
  const elsewhere = new Map(allPaths().map((path) => [path.at(-1)!, written(place.frame(path))]));
  const far = [...elsewhere].filter(([, path]) => path !== "").map(([near]) => near);
  return `${shown}.${suggest(key, far, (near) => `"${elsewhere.get(near)}"`).hint}`;
}

// decision 339
/** Where a key belongs that stands elsewhere. */
function whereIs(places: readonly (readonly string[])[], { full, frame }: Place): string {
  const parents = places.slice(0, MOST_PLACES).flatMap((path) => {
    const own = frame(path);
    return own === undefined || own.length === 0 ? [] : [own.slice(0, -1)];
  });
  if (parents.length > 0) {
    const texts = parents.map((parent) => (parent.length === 0 ? "at the top level" : `under "${written(parent)}"`));
    return `it belongs ${texts.join(" or ")}`;
  }
  // `channels: { web: … }` within what is its content already
  const isAround = places.some((path) => path.every((key, depth) => key === full[depth]));
  return isAround
    ? `expected the keys of "${full.join(".")}" themselves`
    : `it belongs to the configuration of \`latentkit serve\`, or of startService`;
}

/** How keys are written that stand in one, with dots; undefined where the schema has no such path. */
function nestedKey(key: string, at: Path): string | undefined {
  const keys = key.split(".");
  if (keys.length < 2) return undefined;
  const path = [...at, ...keys];
  const isKnown = allPaths().some(
    (known) => known.length === path.length && known.every((name, i) => name === ANY_NAME || name === path[i]),
  );
  return isKnown ? `${keys.join(": { ")}: … ${"} ".repeat(keys.length - 1)}`.trimEnd() : undefined;
}

/** `{ key:secret }` and `{ secret }` are keys to YAML: what may be a secret by such a slip is left out. */
function shownKey(key: string, { full, path, value }: Place): string {
  if (mayHoldSecret(full) && full.length > 0 && valueAt(value, [...path, key]) === null) {
    return key.replace(/(?<![^:=\s])[^:=\s]+$/, "…");
  }
  return key.replace(/[:=\s].*/s, "…");
}

const valueAt = (value: unknown, path: Path): unknown =>
  path.reduce<unknown>((inner, key) => (inner as Record<PropertyKey, unknown> | undefined)?.[key], value);

const written = (path: Path | undefined): string => (path ?? []).map(String).join(".");
