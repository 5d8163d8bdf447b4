import type { z } from "zod";
import { describe, LatentkitError, suggest } from "../../base/errors.js";
import { loadZod } from "../../base/lazy-packages.js";
import { type Config, configSchema } from "./config-schema.js";
import { expectedBy } from "./expected-by.js";
import { shownAddress } from "./shown-address.js";

export type { Config, ConfigInput } from "./config-schema.js";

/**
 * Checks a configuration and fills in the defaults. `source` names it in messages ("latentkit.yaml").
 * Fails with config.invalid, which names the key, what was expected and, for a typo, the key that was meant.
 */
export function parseConfig(value: unknown, source: string): Config {
  const parsed = configSchema().safeParse(value ?? {});
  if (parsed.success) return parsed.data;
  const { issues } = parsed.error;
  // an unknown key is often the reason why a known one is missing
  const issue = issues.find(({ code }) => code === "unrecognized_keys") ?? issues[0]!;
  throw new LatentkitError("config.invalid", `${source}: ${issueText(issue, value)}`);
}

function issueText(issue: z.core.$ZodIssue, value: unknown): string {
  const at = issue.path.map(String).join(".");
  if (issue.code === "unrecognized_keys") {
    const key = issue.keys[0]!;
    const { hint } = suggest(key, keysAt(configSchema(), issue.path), (near) => `"${near}"`);
    const harmless = shownKey(key, [...issue.path, key], value);
    return `unknown key "${at === "" ? harmless : `${at}.${harmless}`}".${hint}`;
  }
  const wrong = valueAt(value, issue.path);
  const received = mayHoldSecret(issue.path) ? kindOf(wrong) : describe(hideSecrets(wrong, issue.path));
  return `"${at}": ${expectedBy(issue)}, received ${received}.`;
}

/** `{ key:secret }` and `{ secret }` are keys to YAML: what may be a secret by such a slip is left out. */
function shownKey(key: string, at: readonly PropertyKey[], config: unknown): string {
  if (mayHoldSecret(at.slice(0, -1)) && at.length > 1 && valueAt(config, at) === null) {
    return key.replace(/(?<![^:=\s])[^:=\s]+$/, "…");
  }
  return key.replace(/[:=\s].*/s, "…");
}

function valueAt(value: unknown, at: readonly PropertyKey[]): unknown {
  return at.reduce<unknown>((inner, key) => (inner as Record<PropertyKey, unknown> | undefined)?.[key], value);
}

/** Keys an object of the schema may hold at a path; none where it is no object. */
function keysAt(schema: z.core.$ZodType, at: readonly PropertyKey[]): string[] {
  let inner: z.core.$ZodType[] = [unwrap(schema)];
  for (const key of at) inner = inner.flatMap((type) => step(type, key));
  return inner.flatMap((type) => (type instanceof loadZod().ZodObject ? Object.keys(type.shape) : []));
}

function step(schema: z.core.$ZodType, key: PropertyKey): z.core.$ZodType[] {
  if (schema instanceof loadZod().ZodArray) return [unwrap(schema.element)];
  if (schema instanceof loadZod().ZodRecord) return [unwrap(schema.valueType)];
  const next =
    schema instanceof loadZod().ZodObject ? (schema.shape as Record<PropertyKey, z.core.$ZodType>)[key] : undefined;
  if (next === undefined) return [];
  const type = unwrap(next);
  return type instanceof loadZod().ZodUnion ? type.options.map(unwrap) : [type];
}

function unwrap(schema: z.core.$ZodType): z.core.$ZodType {
  const { ZodDefault, ZodOptional, ZodPipe, ZodObject } = loadZod();
  if (schema instanceof ZodDefault || schema instanceof ZodOptional) return unwrap(schema.unwrap());
  // an object whose keys are renamed
  return schema instanceof ZodPipe && schema.in instanceof ZodObject ? schema.in : schema;
}

/** Dotted paths of all values an environment variable can set, with the type of each. */
export function configLeaves(
  schema: z.core.$ZodType = configSchema(),
  at: string[] = [],
): [string[], z.core.$ZodType][] {
  const type = unwrap(schema);
  if (!(type instanceof loadZod().ZodObject)) return [[at, type]];
  return Object.entries(type.shape as Record<string, z.core.$ZodType>).flatMap(([key, inner]) =>
    configLeaves(inner, [...at, key]),
  );
}

/** Keys of secrets; ANY stands for each key. */
const ANY = Symbol("any key");
const SECRETS = [
  ["channels", "web", "hooks_token"],
  ["channels", "web", "incoming", ANY, "secrets"],
  ["channels", "web", "webhooks", ANY, "secrets"],
  ["remote_image_api", "keys"],
];

/** Everything below a secret's key, but the names of the remote keys. */
const isSecret = (at: readonly PropertyKey[]) =>
  SECRETS.some((secret) => secret.every((key, depth) => depth < at.length && isKey(key, at[depth]))) &&
  !(at.length === 4 && at[1] === "keys" && at[3] === "name");

/** Whether a secret stands at, below or, by mistake, above a path: `channels: { web: "the token" }`. */
const mayHoldSecret = (at: readonly PropertyKey[]) =>
  at.length === 0 ||
  SECRETS.some((secret) => secret.every((key, depth) => depth >= at.length || isKey(key, at[depth])));

const isKey = (expected: PropertyKey, key: PropertyKey | undefined) => expected === ANY || expected === key;

/** Kind of a value, without a letter of it. */
function kindOf(value: unknown): string {
  if (typeof value === "string") return `a text of ${value.length} characters`;
  const isPlain = typeof value !== "object" || value === null;
  return isPlain && value !== undefined && value !== null ? `a ${typeof value}` : describe(value);
}

const ADDRESS = /^[a-z][\w+.-]*:\/\//i;

/** A copy for printing: each secret shows as "set (32 chars)". @internal */
export function hideSecrets(config: unknown, at: readonly PropertyKey[] = []): unknown {
  const isScalar = typeof config !== "object" || config === null;
  if (isScalar && config !== undefined && isSecret(at)) return `set (${String(config).length} chars)`;
  const isAddress = typeof config === "string" && (at[0] === "store" || at[0] === "files" || ADDRESS.test(config));
  if (isAddress) return shownAddress(config);
  if (Array.isArray(config)) return config.map((item, index) => hideSecrets(item, [...at, index]));
  if (isScalar) return config;
  return Object.fromEntries(Object.entries(config).map(([key, value]) => [key, hideSecrets(value, [...at, key])]));
}
