import { LatentkitError } from "../../base/errors.js";

/** Reads the given texts, an empty list if there are none. `source` begins messages: "--port". */
type Read<Value> = (texts: readonly string[], source: string) => Value;

/** Words of the help on an option or operand. */
interface Told {
  readonly about: string;
  /** The value that holds without it, in words. */
  readonly absent?: string;
}

/** An option of a command: one entry for the parser, the help and docs/cli.md. */
export interface Option<Value = unknown> extends Told {
  /** Its value as the help writes it; undefined if it takes none. */
  readonly form?: string;
  readonly isRepeatable?: boolean;
  /** Its value may be left out and is "" then; the pattern matches a value, and no operand. */
  readonly bare?: RegExp;
  readonly excludes?: { readonly options: readonly string[]; readonly because: string };
  /** Names that other programs give it, or the names of its keys: an unknown option of that name suggests it. */
  readonly elsewhere?: readonly string[];
  /** Line above it in the help, if it begins a group of options. */
  readonly above?: string;
  readonly read: Read<Value>;
}

/** An argument of a command that is not an option. */
export interface Operand<Value = unknown> extends Told {
  readonly isOptional: boolean;
  readonly isMany: boolean;
  readonly read: Read<Value>;
}

/** Types of the values of a table's options or operands. */
export type ValuesOf<Table> = {
  readonly [Name in keyof Table]: Table[Name] extends { read: Read<infer Value> } ? Value : never;
};

type Facts = Pick<Option, "absent" | "bare" | "excludes" | "above" | "elsewhere">;

export const flag = (about: string): Option<boolean> => ({ about, read: (texts) => texts.length > 0 });

/** An option with one value, which `read` reads from its text. */
function valued<Value>(
  form: string,
  about: string,
  facts: Facts,
  read: (text: string, source: string) => Value,
): Option<Value | undefined> {
  return {
    form,
    about,
    ...facts,
    read: ([text], source) => (text === undefined ? undefined : read(text, source)),
  };
}

export const text = (form: string, about: string, facts: Facts = {}): Option<string | undefined> =>
  valued(form, about, facts, (text) => text);

/** A text, `fallback` without the option. */
export const textOr = (fallback: string, form: string, about: string): Option<string> => ({
  form,
  about,
  absent: fallback,
  read: ([text = fallback]) => text,
});

export const texts = (form: string, about: string): Option<readonly string[]> => ({
  form,
  about,
  isRepeatable: true,
  read: (texts) => texts,
});

/** A list in one value, separated by commas. */
export const list = (form: string, about: string, facts: Facts = {}): Option<string[] | undefined> =>
  valued(form, about, facts, (text) => text.split(",").map((part) => part.trim()));

/** Values by key; if a key comes twice the last value counts, or with `isOnce` it is refused. */
export const pairs = (
  form: string,
  about: string,
  { isOnce = false, elsewhere }: Pick<Option, "elsewhere"> & { readonly isOnce?: boolean } = {},
): Option<Readonly<Record<string, string>>> => ({
  form,
  about,
  elsewhere,
  isRepeatable: true,
  read(texts, source) {
    const values = new Map<string, string>();
    for (const text of texts) {
      // the value may contain equals signs
      const equals = text.indexOf("=");
      if (equals <= 0) throw wrong(source, form, text);
      const key = text.slice(0, equals);
      if (isOnce && values.has(key))
        throw new LatentkitError("usage.invalid", `${source}: expected the name "${key}" once.`);
      values.set(key, text.slice(equals + 1));
    }
    return Object.fromEntries(values);
  },
});

export function wholeNumber(
  form: string,
  about: string,
  { min, max, ...facts }: Facts & { readonly min: number; readonly max?: number },
): Option<number | undefined> {
  const expected = max === undefined ? `a whole number from ${min}` : `${min} to ${max}`;
  return valued(form, about, facts, (text, source) => {
    const value = Number(text);
    if (/^\d{1,15}$/.test(text) && value >= min && value <= (max ?? value)) return value;
    throw wrong(source, expected, text);
  });
}

/** One of some words, which the help lists. */
export const choice = <Word extends string>(
  form: string,
  about: string,
  words: readonly Word[],
  facts: Facts = {},
): Option<Word | undefined> =>
  valued(form, `${about}: ${words.slice(0, -1).join(", ")} or ${words.at(-1)}`, facts, (text, source) =>
    wordOf(words, text, source),
  );

/** Throws usage.invalid if the text is not one of the words. */
export function wordOf<Word extends string>(words: readonly Word[], text: string, source: string): Word {
  const word = words.find((word) => word === text);
  if (word !== undefined) return word;
  throw wrong(source, words.join(", "), text);
}

const UNITS = { "": 1, KB: 1e3, MB: 1e6, GB: 1e9, KIB: 2 ** 10, MIB: 2 ** 20, GIB: 2 ** 30 } as const;

/** Fewest bytes: a smaller number lacks its unit. */
const FEWEST_BYTES = 1e6;

/** A number of bytes, from a million up to `most`. */
export const bytes = (form: string, about: string, most: number): Option<number | undefined> =>
  valued(form, about, {}, (text, source) => {
    const [, digits, unit = ""] = /^(\d{1,15}(?:\.\d{1,3})?) ?([KMG]i?B)?$/i.exec(text) ?? [];
    const value = Math.round(Number(digits) * UNITS[unit.toUpperCase() as keyof typeof UNITS]);
    if (value >= FEWEST_BYTES && value <= most) return value;
    throw wrong(source, "bytes, such as 6GB or 500MiB", text);
  });

const wrong = (source: string, expected: string, text: string): LatentkitError =>
  new LatentkitError("usage.invalid", `${source}: expected ${expected}, received ${JSON.stringify(text)}.`);

export const operand = (about: string): Operand<string> => ({
  about,
  isOptional: false,
  isMany: false,
  read: ([text]) => text!,
});

export const optionalOperand = (about: string, absent: string): Operand<string | undefined> => ({
  about,
  absent,
  isOptional: true,
  isMany: false,
  read: ([text]) => text,
});

/** An operand that may be left out; `fallback` then. */
export const operandOr = (fallback: string, about: string): Operand<string> => ({
  ...optionalOperand(about, fallback),
  read: ([text = fallback]) => text,
});

/** One operand or more. */
export const operands = (about: string): Operand<readonly string[]> => ({
  about,
  isOptional: false,
  isMany: true,
  read: (texts) => texts,
});

/** A command of the command line: parser, help and docs/cli.md follow from it. */
export interface Command {
  readonly summary: string;
  /** By their names, in their order; one that may be many is the last. */
  readonly operands: Readonly<Record<string, Operand>>;
  readonly options: Readonly<Record<string, Option>>;
  /** Paragraphs below the options. */
  readonly notes?: readonly string[];
  /** Arguments of calls that the help shows. */
  readonly examples?: readonly string[];
  /** Whether the command handles SIGHUP, if the process has no terminal: it reads files again. */
  readonly reloads?: true;
  /** Whether it has failed if its reader leaves before the end, as a run or check has, but not a listing. */
  readonly isReadToEnd?: true;
}
