import type { z } from "zod";
import { describe } from "../../base/errors.js";

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
