import { type ParseArgsConfig, parseArgs } from "node:util";
import { LatentkitError, suggest } from "../base/errors.js";
import type { Terminal } from "./terminal.js";

type Options = NonNullable<ParseArgsConfig["options"]>;

/** One command of the command line. `run` returns the exit code. */
export interface Command {
  /** The command's name and arguments: `render GRAPH.json`. */
  readonly usage: string;
  readonly summary: string;
  /** Lines of `--help`, one per option. */
  readonly help: readonly string[];
  readonly options: Options;
  /** Options whose value may be omitted and is "" then; the pattern matches a value, not a positional argument. */
  readonly bare?: Readonly<Record<string, RegExp>>;
  /** Whether SIGHUP, where the process has no terminal that could close, is the command's own: it reads files again. */
  readonly reloads?: true;
  readonly positionals: { readonly min: number; readonly max: number };
  /** `signal` aborts at the first Ctrl-C, `urgent()` at the second; a command that never calls `urgent` ends there. */
  run(args: Arguments, terminal: Terminal, signal: AbortSignal, urgent: () => AbortSignal): Promise<number>;
}

export interface Arguments {
  readonly positionals: readonly string[];
  /** Whether the option is present. */
  has(name: string): boolean;
  flag(name: string): boolean;
  value(name: string): string | undefined;
  values(name: string): readonly string[];
}

/** Reads a command's arguments. Throws usage.invalid, which names the argument and, for a typo, the probable option. */
export function readArguments(command: Command, argv: readonly string[]): Arguments {
  const options: Options = { ...command.options, help: { type: "boolean", short: "h" } };
  let parsed: { values: Record<string, unknown>; positionals: string[] };
  try {
    parsed = parseArgs({ args: withValues(argv, command.bare ?? {}), options, allowPositionals: true, strict: true });
  } catch (error) {
    throw usageError(error as Error, Object.keys(options));
  }
  const { values, positionals } = parsed;
  const { min, max } = command.positionals;
  if (values.help !== true && (positionals.length < min || positionals.length > max)) {
    throw positionalsError(command, positionals);
  }
  return {
    positionals,
    has: (name) => values[name] !== undefined,
    flag: (name) => values[name] === true,
    value: (name) => values[name] as string | undefined,
    values: (name) => (values[name] as string[] | undefined) ?? [],
  };
}

function withValues(argv: readonly string[], bare: Readonly<Record<string, RegExp>>): string[] {
  return argv.map((argument, i) => {
    const name = argument.startsWith("--") ? argument.slice(2) : "";
    const pattern = Object.hasOwn(bare, name) ? bare[name] : undefined;
    return pattern === undefined || pattern.test(argv[i + 1] ?? "") ? argument : `${argument}=`;
  });
}

function positionalsError({ usage, positionals: { min, max } }: Command, given: readonly string[]): LatentkitError {
  const name = usage.split(" ")[0]!;
  const surplus = given.slice(max).map((word) => JSON.stringify(word));
  const fault =
    given.length < min
      ? `latentkit ${name} --help shows the options`
      : `${surplus.join(" ")} ${surplus.length === 1 ? "is" : "are"} too much; a value with blanks takes quotes`;
  return new LatentkitError("usage.invalid", `Usage: latentkit ${usage}; ${fault}.`);
}

function usageError(error: Error, options: readonly string[]): LatentkitError {
  const unknown = /Unknown option '--?([^']*)'/.exec(error.message)?.[1];
  if (unknown === undefined)
    return new LatentkitError("usage.invalid", valueFault(error.message), {}, { cause: error });
  const { suggestion, hint } = suggest(unknown, options, (near) => `--${near}`);
  return new LatentkitError("usage.invalid", `Unknown option --${unknown}.${hint}`, { suggestion });
}

/** Sentence about the value of an option, from Node's message. */
function valueFault(message: string): string {
  const option = /^Option '(?:-\w, )?(--[\w-]+)/.exec(message)?.[1];
  if (option === undefined) return sentence(message);
  if (message.includes("does not take an argument")) return `${option}: expected no value, received one.`;
  const dashed = message.includes("ambiguous") ? `; one that begins with a dash is written ${option}=-…` : "";
  return `${option}: expected a value, received none${dashed}.`;
}

function sentence(message: string): string {
  const first = message.split(/\. |\n/)[0]!;
  return first.endsWith(".") ? first : `${first}.`;
}

/** Splits `key=value`; the value may contain equals signs. `form`: how the help writes it. */
export function pair(option: string, text: string, form = "KEY=VALUE"): [string, string] {
  const equals = text.indexOf("=");
  if (equals > 0) return [text.slice(0, equals), text.slice(equals + 1)];
  throw new LatentkitError("usage.invalid", `--${option}: expected ${form}, received ${JSON.stringify(text)}.`);
}

/** Splits node ids: "4,7". */
export const idList = (text: string | undefined): string[] | undefined => text?.split(",").map((id) => id.trim());

/** A whole number of at least `min`; undefined where the option is absent. */
export function wholeNumber(args: Arguments, option: string, min: number): number | undefined {
  const text = args.value(option);
  if (text === undefined) return undefined;
  const value = Number(text);
  if (/^\d{1,15}$/.test(text) && value >= min) return value;
  const received = JSON.stringify(text);
  throw new LatentkitError("usage.invalid", `--${option}: expected a whole number from ${min}, received ${received}.`);
}
