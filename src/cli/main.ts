import { closest, LatentkitError } from "../errors.js";
import { engineVersion } from "../native/engine-version.js";
import { type Command, readArguments } from "./command.js";
import type { StartService } from "./serve.js";
import { harmless, processTerminal, red, type Terminal } from "./terminal.js";

type Commands = Readonly<Record<string, () => Promise<Command>>>;

// loaded when called for, so that `--help` needs neither the native core nor the nodes
const commandsWith = (startService: StartService): Commands => ({
  init: async () => (await import("./init.js")).initCommand,
  render: async () => (await import("./render.js")).renderCommand,
  serve: async () => (await import("./serve.js")).serveCommand(startService),
  nodes: async () => (await import("./nodes.js")).nodesCommand,
  validate: async () => (await import("./validate.js")).validateCommand,
  inspect: async () => (await import("./inspect.js")).inspectCommand,
  verify: async () => (await import("./verify.js")).verifyCommand,
  doctor: async () => (await import("./doctor.js")).doctorCommand,
});

const noService: StartService = () => {
  throw new LatentkitError("usage.invalid", "This program has no service; the command latentkit has.");
};

const INTERRUPTED = 130;
/** Comes when the terminal is closed. */
const HANG_UP = "SIGHUP";
const STOP_SIGNALS = ["SIGINT", "SIGTERM", HANG_UP] as const;

/**
 * Runs the command line; the answer is the exit code: 0 done, 1 run failed, 2 bad graph or usage, 3 bad configuration,
 * 130 interrupted. `startService` is what `serve` starts: the command line itself knows nothing of the service.
 */
export async function main(
  argv: readonly string[],
  terminal: Terminal = ownTerminal(argv),
  startService: StartService = noService,
): Promise<number> {
  const controller = new AbortController();
  let second: AbortController | undefined;
  const urgent = () => {
    second ??= new AbortController();
    return second.signal;
  };
  let isHungUp = false;
  const interrupt = (name: NodeJS.Signals) => {
    isHungUp ||= name === HANG_UP;
    if (!controller.signal.aborted) controller.abort();
    else if (second?.signal.aborted === false) second.abort();
    // nobody waits for a running node any more
    else process.exit(INTERRUPTED);
  };
  for (const name of STOP_SIGNALS) process.on(name, interrupt);
  try {
    return await dispatch(argv, terminal, controller.signal, urgent, commandsWith(startService));
  } catch (error) {
    return report(error, terminal, controller.signal);
  } finally {
    for (const name of STOP_SIGNALS) process.off(name, interrupt);
    // at a usual end Node sets its terminal back, and aborts where that is gone
    if (isHungUp && [process.stdin, process.stdout, process.stderr].some(({ isTTY }) => isTTY)) {
      process.kill(process.pid, HANG_UP);
    }
  }
}

/** A run or check that is cut because nobody reads on has not succeeded; a listing has. */
const ownTerminal = (argv: readonly string[]) => processTerminal(argv[0] === "render" || argv[0] === "verify" ? 1 : 0);

async function dispatch(
  argv: readonly string[],
  terminal: Terminal,
  signal: AbortSignal,
  urgent: () => AbortSignal,
  commands: Commands,
): Promise<number> {
  const [name, ...rest] = argv;
  if (name === "--version" || name === "-v" || rest[0] === "--version") {
    terminal.out(`${engineVersion()}\n`);
    return 0;
  }
  if (name === undefined || name === "--help" || name === "-h" || name === "help") {
    const text = await overview(commands);
    if (name !== undefined) terminal.out(text);
    else terminal.err(text);
    return name === undefined ? 2 : 0;
  }
  const command = await find(name, commands);
  const args = readArguments(command, rest);
  if (args.flag("help")) {
    terminal.out([`Usage: latentkit ${command.usage}`, "", command.summary, "", ...command.help, ""].join("\n"));
    return 0;
  }
  await warnOfVariables(terminal);
  return await command.run(args, terminal, signal, urgent);
}

/** A misspelt variable sets nothing, whatever the command. */
async function warnOfVariables({ env, err }: Terminal): Promise<void> {
  // the schema that knows all names is not loaded for nothing
  if (!Object.keys(env).some((name) => name.startsWith("LATENTKIT_"))) return;
  const { unknownVariables } = await import("../render/load-config.js");
  for (const sentence of unknownVariables(env)) err(`Warning: ${sentence}\n`);
}

async function find(name: string, commands: Commands): Promise<Command> {
  if (Object.hasOwn(commands, name)) return await commands[name]!();
  const near = closest(name, Object.keys(commands));
  const hint = near === undefined ? ` Expected one of ${Object.keys(commands).join(", ")}.` : ` Did you mean ${near}?`;
  throw new LatentkitError("usage.invalid", `Unknown command "${name}".${hint}`, { suggestion: near });
}

async function overview(commands: Commands): Promise<string> {
  const loaded = await Promise.all(Object.values(commands).map((load) => load()));
  const width = Math.max(...loaded.map(({ usage }) => usage.length));
  const lines = loaded.map(({ usage, summary }) => `  latentkit ${usage.padEnd(width)}  ${summary}`);
  return [
    "Runs ComfyUI API-format graphs inside Node.js.",
    "",
    ...lines,
    "",
    "latentkit COMMAND --help tells more.",
    "",
  ].join("\n");
}

/** The message, with what was meant where it does not say so itself. */
function withHint({ message, details: { suggestion } }: LatentkitError): string {
  return suggestion === undefined || message.includes(suggestion)
    ? message
    : `${message} Did you mean "${suggestion}"?`;
}

/** One sentence for a person; LATENTKIT_DEBUG=1 adds the stack. */
function report(error: unknown, terminal: Terminal, signal: AbortSignal): number {
  if (signal.aborted) {
    terminal.err("Interrupted.\n");
    return INTERRUPTED;
  }
  const known = error instanceof LatentkitError;
  const message = known ? withHint(error) : `Internal error: ${error instanceof Error ? error.message : String(error)}`;
  terminal.err(`${red(terminal, "latentkit:")} ${harmless(message)}\n`);
  if (terminal.env.LATENTKIT_DEBUG === "1" && error instanceof Error) terminal.err(`${error.stack}\n`);
  return known ? error.meaning.exit : 1;
}
