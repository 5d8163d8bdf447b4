import { type ParseArgsConfig, parseArgs } from "node:util";
import { closest, LatentkitError } from "../errors.js";
import type { Terminal } from "./terminal.js";

type Options = NonNullable<ParseArgsConfig["options"]>;

/** One command of the command line. `run` answers with the exit code. */
export interface Command {
  /** What stands after "latentkit": `render GRAPH.json [options]`. */
  readonly usage: string;
  readonly summary: string;
  /** Lines of `--help`, an option each. */
  readonly help: readonly string[];
  readonly options: Options;
  readonly positionals: { readonly min: number; readonly max: number };
  run(args: Arguments, terminal: Terminal, signal: AbortSignal): Promise<number>;
}

export interface Arguments {
  readonly positionals: readonly string[];
  flag(name: string): boolean;
  value(name: string): string | undefined;
  values(name: string): readonly string[];
}

/** Reads a command's arguments. Fails with usage.invalid, which names the argument and, for a typo, what was meant. */
export function readArguments(command: Command, argv: readonly string[]): Arguments {
  const options: Options = { ...command.options, help: { type: "boolean", short: "h" } };
  let parsed: { values: Record<string, unknown>; positionals: string[] };
  try {
    parsed = parseArgs({ args: [...argv], options, allowPositionals: true, strict: true });
  } catch (error) {
    throw usageError(error as Error, Object.keys(options));
  }
  const { values, positionals } = parsed;
  const { min, max } = command.positionals;
  if (values.help !== true && (positionals.length < min || positionals.length > max)) {
    throw new LatentkitError("usage.invalid", `Usage: latentkit ${command.usage}.`);
  }
  return {
    positionals,
    flag: (name) => values[name] === true,
    value: (name) => values[name] as string | undefined,
    values: (name) => (values[name] as string[] | undefined) ?? [],
  };
}

function usageError(error: Error, known: readonly string[]): LatentkitError {
  const unknown = /Unknown option '--?([^']*)'/.exec(error.message)?.[1];
  if (unknown === undefined) return new LatentkitError("usage.invalid", sentence(error.message), {}, { cause: error });
  const near = closest(unknown, known);
  const hint = near === undefined ? "" : ` Did you mean --${near}?`;
  return new LatentkitError("usage.invalid", `Unknown option --${unknown}.${hint}`, { suggestion: near });
}

function sentence(message: string): string {
  const first = message.split(/\. |\n/)[0]!;
  return first.endsWith(".") ? first : `${first}.`;
}

/** Splits `key=value`; the value may hold further equals signs. */
export function pair(option: string, text: string): [string, string] {
  const equals = text.indexOf("=");
  if (equals > 0) return [text.slice(0, equals), text.slice(equals + 1)];
  throw new LatentkitError("usage.invalid", `--${option}: expected KEY=VALUE, received ${JSON.stringify(text)}.`);
}

/** "4,7" */
export const idList = (text: string | undefined): string[] | undefined => text?.split(",").map((id) => id.trim());
