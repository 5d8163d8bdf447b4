import { describe } from "../../base/errors.js";

/** Keys of secrets; ANY stands for each key. */
const ANY = Symbol("any key");
const SECRETS = [
  ["channels", "web", "hooks_token"],
  ["channels", "web", "incoming", ANY, "secrets"],
  ["channels", "web", "webhooks", ANY, "secrets"],
  ["remote_image_api", "keys"],
];

/** Everything below a secret's key, except the names of the remote keys. */
const isSecret = (at: readonly PropertyKey[]) =>
  SECRETS.some((secret) => secret.every((key, depth) => depth < at.length && isKey(key, at[depth]))) &&
  !(at.length === 4 && at[1] === "keys" && at[3] === "name");

/** Whether a secret stands at, below or, by mistake, above a path: `channels: { web: "the token" }`. */
export const mayHoldSecret = (at: readonly PropertyKey[]): boolean =>
  at.length === 0 ||
  SECRETS.some((secret) => secret.every((key, depth) => depth >= at.length || isKey(key, at[depth])));

const isKey = (expected: PropertyKey, key: PropertyKey | undefined) => expected === ANY || expected === key;

/** A value of the configuration for a message, without a letter of a possible secret. */
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

/**
 * An address whose parts cannot be taken for each other: a password with "/", "?" or "#" in it would look like host, path
 * or query, and so would an "@" outside of user and password.
 */
const CLEAR =
  /^(?<scheme>[a-z][\w+.-]*:\/\/)(?:(?<user>[^/?#]*)@)?(?<place>(?:(?:[\w.-]|%2f)*|\[[\da-f:.]+\])(?::\d+)?(?:\/(?:[^?#@%]|%(?!40))*)?)(?:\?(?<query>[^#@]*))?$/i;
/** Parameters of the query that may be shown: those of the stores' addresses that are not secrets. */
const HARMLESS =
  /^(?:application_name|connect_timeout|dbname|encoding|endpoint|host|path_style|port|region|schema|sslmode|user)$/;
const FILE = /^(?:memory:|sqlite:)/;
/** A text meant as an address that does not name a user. */
const WORD = /^(?:(?:memory|postgres(?:ql)?|s3|sqlite):)?[\w./-]*$/;
const ENCODED_OR_NAMED = /%40|password\s{0,9}=/i;

const setOf = (secret: string): string => `set (${secret.length} chars)`;

// Shown only if it can be read in one way: with "@" or "/" in a password the driver takes a piece of it for the host.
/**
 * The text of an address as anyone may read it: postgres://user:set (6 chars)@host/database. A password, a user that
 * stands alone (it may be a token) and unknown parameters are hidden, and so is everything after the scheme if the address
 * could be read in two ways.
 */
export function shownAddress(text: string): string {
  if (WORD.test(text)) return text;
  if (FILE.test(text) && !mayNameUser(text.slice(text.indexOf(":") + 1))) return text;
  const { scheme, user, place, query } = CLEAR.exec(text)?.groups ?? {};
  if (scheme === undefined) {
    const [, known = ""] = /^((?:postgres(?:ql)?|sqlite|s3|https?):(?:\/\/)?)/i.exec(text) ?? [];
    return known + setOf(text.slice(known.length));
  }
  const shown = [scheme, user === undefined ? "" : `${shownUser(user)}@`, place];
  if (query !== undefined) shown.push("?", query.split("&").map(shownParameter).join("&"));
  return shown.join("");
}

function mayNameUser(path: string): boolean {
  const colon = path.indexOf(":");
  return (colon >= 0 && colon < path.lastIndexOf("@")) || ENCODED_OR_NAMED.test(path);
}

/** A sentence without users and passwords of the addresses in it. */
export const withoutUsers = (sentence: string): string =>
  sentence.replace(/(?<![\w+.-])([a-z][\w+.-]{0,30}:\/\/)[^\s"]*@/gi, "$1…@");

/** Only the host and database of an address; undefined if it could be read in two ways. */
export const placeOf = (text: string): string | undefined => CLEAR.exec(text)?.groups?.place;

function shownUser(text: string): string {
  const colon = text.indexOf(":");
  return colon < 0 || /[@%]/.test(text.slice(0, colon))
    ? setOf(text)
    : `${text.slice(0, colon)}:${setOf(text.slice(colon + 1))}`;
}

function shownParameter(text: string): string {
  const [, name, value] = /^(\w+)=(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined) return setOf(text);
  return HARMLESS.test(name) ? text : `${name}=${setOf(value)}`;
}
