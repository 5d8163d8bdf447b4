/**
 * An address whose parts cannot be taken for each other: a password with "/", "?" or "#" in it would look like host, path
 * or query, and so would an "@" outside of user and password.
 */
const CLEAR =
  /^(?<scheme>[a-z][\w+.-]*:\/\/)(?:(?<user>[^/?#]*)@)?(?<place>(?:(?:[\w.-]|%2f)*|\[[\da-f:.]+\])(?::\d+)?(?:\/(?:[^?#@%]|%(?!40))*)?)(?:\?(?<query>[^#@]*))?$/i;
/** Parameters of the query that may be read by others: those of the stores' addresses that are no secrets. */
const HARMLESS =
  /^(?:application_name|connect_timeout|dbname|encoding|endpoint|host|path_style|port|region|schema|sslmode|user)$/;
const FILE = /^(?:memory:|sqlite:)/;
/** A text that was to be an address, and names no user. */
const WORD = /^(?:(?:memory|postgres(?:ql)?|s3|sqlite):)?[\w./-]*$/;
const ENCODED_OR_NAMED = /%40|password\s{0,9}=/i;

const setOf = (secret: string): string => `set (${secret.length} chars)`;

// decision 335
/**
 * The text of an address as anyone may read it: postgres://user:set (6 chars)@host/database. A password, a user that
 * stands alone (it may be a token) and unknown parameters are hidden, and so is all behind the scheme of an address that
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

/** Host and database of an address alone; undefined where it could be read in two ways. */
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
