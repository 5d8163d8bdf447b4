import { LatentkitError } from "../../base/errors.js";

const MOST_REFERENCES = 32;

/** A value of a signed request: by its JSON pointer (RFC 6901), as keys, or by the name of a header in lower case. */
export type Reference = { readonly pointer: readonly string[] } | { readonly header: string };

/** Pieces of a template, in order: texts as they are, and references. */
export type Template = readonly (string | (Reference & { readonly written: string }))[];

/**
 * Reads a template: a text with references in double braces, as `{{/repository/name}}` and `{{X-GitHub-Event}}`. `{{}}` is
 * the whole payload. Fails with config.invalid.
 */
export function parseTemplate(text: string): Template {
  const [first = "", ...rest] = text.split("{{", MOST_REFERENCES + 2);
  if (rest.length > MOST_REFERENCES) throw invalid(`expected at most ${MOST_REFERENCES} references`);
  const pieces: Template[number][] = [first];
  for (const piece of rest) {
    const end = piece.indexOf("}}");
    if (end < 0) throw invalid(`expected }} after ${JSON.stringify(`{{${piece.slice(0, 40)}`)}`);
    const written = piece.slice(0, end).trim();
    pieces.push({ ...parseReference(written), written }, piece.slice(end + 2));
  }
  return pieces.filter((piece) => piece !== "");
}

/** Reads what stands between the braces. Fails with config.invalid. */
export function parseReference(written: string): Reference {
  if (written === "") return { pointer: [] };
  if (!written.startsWith("/")) {
    if (/^[A-Za-z][A-Za-z0-9-]{0,63}$/.test(written)) return { header: written.toLowerCase() };
    throw invalid(`expected a JSON pointer as /action or a header's name, not ${JSON.stringify(written.slice(0, 40))}`);
  }
  if (/~(?![01])/.test(written)) throw invalid("expected ~0 for ~ and ~1 for / in the keys of a JSON pointer");
  const keys = written.slice(1).split("/");
  return { pointer: keys.map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~")) };
}

const invalid = (sentence: string) => new LatentkitError("config.invalid", sentence);
