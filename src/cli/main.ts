import { createRequire } from "node:module";
import { LatentkitError, permissionHint } from "../base/errors.js";
import { packageVersion } from "../base/package.js";
import { suggest } from "../base/suggest.js";
import { withoutUsers } from "../render/config/secrets.js";
import { readArguments } from "./table/arguments.js";
import { COMMANDS, type CommandName, type Run, type ValuesOfCommand } from "./table/commands.js";
import { helpOf, overviewOf } from "./table/help.js";
import type { Command } from "./table/option.js";
import { harmless, INTERRUPTED, processTerminal, red, type Terminal } from "./terminal.js";

/** Loads a module by `require`, which takes half the time of `import` in Node 20. */
const load = createRequire(import.meta.url);

/** Code of the commands, each loaded when it runs. */
const MODULES: { readonly [Name in CommandName]: () => { readonly run: Run<Name> } } = {
  init: () => load("./commands/init.js") as typeof import("./commands/init.js"),
  render: () => load("./commands/render.js") as typeof import("./commands/render.js"),
  serve: () => load("./commands/serve.js") as typeof import("./commands/serve.js"),
  worker: () => load("./commands/worker.js") as typeof import("./commands/worker.js"),
  nodes: () => load("./commands/nodes.js") as typeof import("./commands/nodes.js"),
  models: () => load("./commands/models.js") as typeof import("./commands/models.js"),
  schema: () => load("./commands/schema.js") as typeof import("./commands/schema.js"),
  validate: () => load("./commands/validate.js") as typeof import("./commands/validate.js"),
  convert: () => load("./commands/convert.js") as typeof import("./commands/convert.js"),
  inspect: () => load("./commands/inspect.js") as typeof import("./commands/inspect.js"),
  verify: () => load("./commands/verify.js") as typeof import("./commands/verify.js"),
  test: () => load("./commands/test.js") as typeof import("./commands/test.js"),
  doctor: () => load("./commands/doctor.js") as typeof import("./commands/doctor.js"),
};

/** Sent when the terminal is closed. */
const HANG_UP = "SIGHUP";
const STOP_SIGNALS = ["SIGINT", "SIGTERM", HANG_UP] as const;

/** One run of the command line. */
interface Call {
  readonly terminal: Terminal;
  readonly signal: AbortSignal;
  readonly urgent: () => AbortSignal;
  /** Called before the command runs. */
  begin(command: Command): void;
}

// Without LATENTKIT_DEBUG=1 every failure is one sentence.
/**
 * Runs the command line and returns the exit code: 0 done, 1 run failed, 2 bad graph or usage, 3 bad configuration,
 * 130 interrupted.
 */
export async function main(argv: readonly string[], terminal: Terminal = ownTerminal(argv)): Promise<number> {
  const controller = new AbortController();
  let second: AbortController | undefined;
  const urgent = () => {
    second ??= new AbortController();
    return second.signal;
  };
  let isHungUp = false;
  let running: Command | undefined;
  const interrupt = (name: NodeJS.Signals) => {
    if (name === HANG_UP && running?.reloads && !hasTerminal()) return;
    isHungUp ||= name === HANG_UP;
    if (!controller.signal.aborted) controller.abort();
    else if (second?.signal.aborted === false) second.abort();
    // the second Ctrl-C does not wait for a running node
    else process.exit(INTERRUPTED);
  };
  for (const name of STOP_SIGNALS) process.on(name, interrupt);
  try {
    const begin = (command: Command) => {
      running = command;
    };
    return await dispatch(argv, { terminal, signal: controller.signal, urgent, begin });
  } catch (error) {
    return report(error, terminal, controller.signal);
  } finally {
    for (const name of STOP_SIGNALS) process.off(name, interrupt);
    // at a normal exit Node restores the terminal, and aborts if the terminal is gone
    if (isHungUp && hasTerminal()) {
      process.kill(process.pid, HANG_UP);
    }
  }
}

const hasTerminal = () => [process.stdin, process.stdout, process.stderr].some(({ isTTY }) => isTTY);

function ownTerminal([name = ""]: readonly string[]): Terminal {
  const command: Command | undefined = isCommand(name) ? COMMANDS[name] : undefined;
  return processTerminal(command?.isReadToEnd === true ? 1 : 0);
}

async function dispatch([name, ...rest]: readonly string[], call: Call): Promise<number> {
  const { terminal } = call;
  if (name === "--version" || name === "-v" || rest[0] === "--version") {
    terminal.out(`${packageVersion()}\n`);
    return 0;
  }
  if (name === "help" && rest[0] !== undefined) return await run(commandNamed(rest[0]), ["--help"], call);
  if (name === undefined || name === "--help" || name === "-h" || name === "help") {
    const print = name === undefined ? terminal.err : terminal.out;
    print(overviewOf(COMMANDS));
    return name === undefined ? 2 : 0;
  }
  return await run(commandNamed(name), rest, call);
}

async function run<Name extends CommandName>(
  name: Name,
  argv: readonly string[],
  { terminal, signal, urgent, begin }: Call,
): Promise<number> {
  const args = readArguments<ValuesOfCommand<Name>>(name, COMMANDS[name], argv);
  if (args === undefined) {
    terminal.out(helpOf(name, COMMANDS[name]));
    return 0;
  }
  await warnOfVariables(terminal);
  begin(COMMANDS[name]);
  return await MODULES[name]().run(args, terminal, signal, urgent);
}

/** Warns of misspelt variables, which set nothing. */
async function warnOfVariables({ env, err }: Terminal): Promise<void> {
  // loads the configuration's schema only if there is a variable to check
  if (!Object.keys(env).some((name) => name.startsWith("LATENTKIT_"))) return;
  const { unknownVariables } = await import("../render/config/load-config.js");
  for (const sentence of unknownVariables(env)) err(`Warning: ${sentence}\n`);
}

const isCommand = (name: string): name is CommandName => Object.hasOwn(COMMANDS, name);

function commandNamed(name: string): CommandName {
  if (isCommand(name)) return name;
  const names = Object.keys(COMMANDS);
  const { suggestion, hint } = suggest(name, names);
  const isFile = /\.(?:json|png|webp|jpe?g|avif)$/i.test(name);
  const render = isFile ? ` Did you mean latentkit render ${name}?` : ` Expected one of ${names.join(", ")}.`;
  const help = hint === "" ? render : hint;
  throw new LatentkitError("usage.invalid", `Unknown command "${name}".${help}`, { suggestion });
}

/** Appends the suggestion to a message that lacks it. */
function withHint({ message, details: { suggestion } }: LatentkitError): string {
  return suggestion === undefined || message.includes(suggestion)
    ? message
    : `${message} Did you mean "${suggestion}"?`;
}

/** Prints an error as one sentence, with LATENTKIT_DEBUG=1 also its stack. Returns the exit code. */
function report(error: unknown, terminal: Terminal, signal: AbortSignal): number {
  if (signal.aborted) {
    terminal.err("Interrupted.\n");
    return INTERRUPTED;
  }
  const isOurs = error instanceof LatentkitError;
  const denied = permissionHint(error);
  const message = isOurs
    ? withHint(error)
    : `Internal error: ${error instanceof Error ? error.message : String(error)}${denied === undefined ? "" : `. ${denied}`}`;
  terminal.err(`${red(terminal, "latentkit:")} ${harmless(withoutUsers(message))}\n`);
  if (terminal.env.LATENTKIT_DEBUG === "1" && error instanceof Error)
    terminal.err(`${withoutUsers(String(error.stack))}\n`);
  return isOurs ? error.meaning.exit : 1;
}
