import { type ParseArgsConfig, parseArgs } from "node:util";
import { LatentkitError } from "../../base/errors.js";
import { suggest } from "../../base/suggest.js";
import { usageOf } from "./help.js";
import type { Command, Option } from "./option.js";

/** The arguments of a command, by the names in its table. */
export interface Arguments<Values extends object> {
  /** Whether the option or operand is there. */
  has(name: keyof Values & string): boolean;
  /** Value of an option or operand. Throws usage.invalid if it is wrong, or stands beside one that it excludes. */
  get<Name extends keyof Values & string>(name: Name): Values[Name];
}

type Options = Command["options"];

/** Words of an argument by its name, an empty list if it is absent. */
type Given = ReadonlyMap<string, readonly string[]>;

/**
 * Reads a command's arguments; undefined if they ask for help. Throws usage.invalid, which names the argument and, for a
 * typo, the probable option. What is wrong with a value shows when the command asks for it.
 */
export function readArguments<Values extends object>(
  name: string,
  command: Command,
  argv: readonly string[],
): Arguments<Values> | undefined {
  const { options, operands } = command;
  const { help, given, words } = parse(name, argv, options);
  if (help) return undefined;
  const all = new Map([...given, ...wordsByOperand(name, command, words)]);
  // read when asked for: `render --json` tells of a wrong value in its last line
  return {
    has: (name) => all.has(name),
    get<Name extends keyof Values & string>(name: Name) {
      const option = Object.hasOwn(options, name) ? options[name] : undefined;
      if (option !== undefined && all.has(name)) refuseExcluded(name, option, all);
      const { read } = option ?? operands[name]!;
      return read(all.get(name) ?? [], `--${name}`) as Values[Name];
    },
  };
}

function parse(name: string, argv: readonly string[], options: Options) {
  const known: NonNullable<ParseArgsConfig["options"]> = { help: { type: "boolean", short: "h" } };
  for (const [name, { form, isRepeatable = false }] of Object.entries(options))
    known[name] = { type: form === undefined ? "boolean" : "string", multiple: isRepeatable };
  try {
    const { values, positionals } = parseArgs({
      args: withValues(argv, options),
      options: known,
      allowPositionals: true,
    });
    const { help, ...others } = values;
    const given: Given = new Map(Object.entries(others).map(([name, value]) => [name, [value].flat().map(String)]));
    return { help: help === true, given, words: positionals };
  } catch (error) {
    throw usageError(error as Error, name, options);
  }
}

/** Arguments with an empty value for each option that stands without the one it may have. */
function withValues(argv: readonly string[], options: Options): string[] {
  return argv.map((argument, i) => {
    const name = argument.startsWith("--") ? argument.slice(2) : "";
    const bare = Object.hasOwn(options, name) ? options[name]!.bare : undefined;
    return bare === undefined || bare.test(argv[i + 1] ?? "") ? argument : `${argument}=`;
  });
}

function wordsByOperand(name: string, command: Command, words: readonly string[]): Given {
  const operands = Object.entries(command.operands);
  const fewest = operands.filter(([, { isOptional }]) => !isOptional).length;
  const most = operands.some(([, { isMany }]) => isMany) ? words.length : operands.length;
  if (words.length < fewest || words.length > most) {
    const surplus = words.slice(most).map((word) => JSON.stringify(word));
    const fault =
      words.length < fewest
        ? `latentkit ${name} --help shows the options`
        : `unexpected ${surplus.length === 1 ? "argument" : "arguments"} ${surplus.join(" ")}; quote values that contain spaces`;
    throw new LatentkitError("usage.invalid", `Usage: latentkit ${usageOf(name, command)}; ${fault}.`);
  }
  const given = operands.map(
    ([operand, { isMany }], i) => [operand, words.slice(i, isMany ? undefined : i + 1)] as const,
  );
  return new Map(given.filter(([, own]) => own.length > 0));
}

function refuseExcluded(name: string, { excludes }: Option, given: Given): void {
  const other = excludes?.options.find((other) => given.has(other));
  if (excludes === undefined || other === undefined) return;
  const message = `--${other} cannot be combined with --${name}: ${excludes.because}.`;
  throw new LatentkitError("usage.invalid", message);
}

function usageError(error: Error, name: string, options: Options): LatentkitError {
  const [, unknown, word = ""] = /Unknown option '(--?([^']*))'/.exec(error.message) ?? [];
  if (unknown === undefined)
    return new LatentkitError("usage.invalid", valueFault(error.message), {}, { cause: error });
  const [own, { form = "" } = {}] =
    Object.entries(options).find(([, { elsewhere }]) => elsewhere?.includes(word)) ?? [];
  // a key of --set is shown with its place in the value
  const shown = form.startsWith("KEY=") ? `--${own} ${word}=…` : `--${own}`;
  const { suggestion, hint } =
    own === undefined
      ? suggest(word, [...Object.keys(options), "help"], (near) => `--${near}`)
      : { suggestion: shown, hint: ` Did you mean ${shown}?` };
  const help = hint === "" ? ` latentkit ${name} --help shows the options.` : hint;
  return new LatentkitError("usage.invalid", `Unknown option ${unknown}.${help}`, { suggestion });
}

/** Sentence about the value of an option, from Node's message. */
function valueFault(message: string): string {
  const option = /^Option '(?:-\w, )?(--[\w-]+)/.exec(message)?.[1];
  if (option === undefined) return sentence(message);
  if (message.includes("does not take an argument")) return `${option}: expected no value, received one.`;
  const dashed = message.includes("ambiguous") ? `; write one that begins with a dash as ${option}=-…` : "";
  return `${option}: expected a value, received none${dashed}.`;
}

function sentence(message: string): string {
  const first = message.split(/\. |\n/)[0]!;
  return first.endsWith(".") ? first : `${first}.`;
}
