import { describe } from "../../base/errors.js";
import { shownAddress } from "./shown-address.js";

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
export const mayHoldSecret = (at: readonly PropertyKey[]): boolean =>
  at.length === 0 ||
  SECRETS.some((secret) => secret.every((key, depth) => depth >= at.length || isKey(key, at[depth])));

const isKey = (expected: PropertyKey, key: PropertyKey | undefined) => expected === ANY || expected === key;

/** A value of the configuration for a message, without a letter of what may be a secret. */
export function shownValue(value: unknown, at: readonly PropertyKey[]): string {
  if (value === undefined) return "nothing";
  return mayHoldSecret(at) ? kindOf(value) : describe(hideSecrets(value, at));
}

function kindOf(value: unknown): string {
  if (typeof value === "string") return `a text of ${value.length} characters`;
  return typeof value === "object" ? describe(value) : `a ${typeof value}`;
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
