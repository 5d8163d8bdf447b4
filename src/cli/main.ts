import { createRequire } from "node:module";
import { LatentkitError, suggest } from "../base/errors.js";
import { packageVersion } from "../base/package.js";
import { permissionHint } from "../base/permission.js";
import { withoutUsers } from "../render/config/shown-address.js";
import type { CreateStoreRunners } from "./batch/render-batch.js";
import { type Command, readArguments } from "./command.js";
import type { StartService } from "./commands/serve.js";
import type { StartWorker } from "./commands/worker.js";
import { harmless, processTerminal, red, type Terminal } from "./terminal.js";

type Commands = Readonly<Record<string, () => Command>>;

/** Loads a module by `require`, which takes half the time of `import` in Node 20. */
const load = createRequire(import.meta.url);

// loaded on demand: a command loads only what it needs
const commandsWith = (
  startService: StartService,
  startWorker: StartWorker,
  storeRunners: CreateStoreRunners,
): Commands => ({
  init: () => (load("./commands/init.js") as typeof import("./commands/init.js")).initCommand,
  render: () => (load("./commands/render.js") as typeof import("./commands/render.js")).renderCommand(storeRunners),
  serve: () => (load("./commands/serve.js") as typeof import("./commands/serve.js")).serveCommand(startService),
  worker: () => (load("./commands/worker.js") as typeof import("./commands/worker.js")).workerCommand(startWorker),
  nodes: () => (load("./commands/nodes.js") as typeof import("./commands/nodes.js")).nodesCommand,
  models: () => (load("./commands/models.js") as typeof import("./commands/models.js")).modelsCommand,
  schema: () => (load("./commands/schema.js") as typeof import("./commands/schema.js")).schemaCommand,
  validate: () => (load("./commands/validate.js") as typeof import("./commands/validate.js")).validateCommand,
  convert: () => (load("./commands/convert.js") as typeof import("./commands/convert.js")).convertCommand,
  inspect: () => (load("./commands/inspect.js") as typeof import("./commands/inspect.js")).inspectCommand,
  verify: () => (load("./commands/verify.js") as typeof import("./commands/verify.js")).verifyCommand,
  test: () => (load("./commands/test.js") as typeof import("./commands/test.js")).testCommand,
  doctor: () => (load("./commands/doctor.js") as typeof import("./commands/doctor.js")).doctorCommand,
});

const noService = () => {
  throw new LatentkitError("usage.invalid", "This program has no service: use the command latentkit.");
};

const INTERRUPTED = 130;
/** Sent when the terminal is closed. */
const HANG_UP = "SIGHUP";
const STOP_SIGNALS = ["SIGINT", "SIGTERM", HANG_UP] as const;

// decision 39
/**
 * Runs the command line and returns the exit code: 0 done, 1 run failed, 2 bad graph or usage, 3 bad configuration,
 * 130 interrupted. `serve`, `worker` and `render --store` call what they are handed: the command line itself does not import the service.
 */
export async function main(
  argv: readonly string[],
  terminal: Terminal = ownTerminal(argv),
  startService: StartService = noService,
  startWorker: StartWorker = noService,
  storeRunners: CreateStoreRunners = noService,
): Promise<number> {
  const controller = new AbortController();
  let second: AbortController | undefined;
  const urgent = () => {
    second ??= new AbortController();
    return second.signal;
  };
  let isHungUp = false;
  let command: Command | undefined;
  const interrupt = (name: NodeJS.Signals) => {
    if (name === HANG_UP && command?.reloads && !hasTerminal()) return;
    isHungUp ||= name === HANG_UP;
    if (!controller.signal.aborted) controller.abort();
    else if (second?.signal.aborted === false) second.abort();
    // the second Ctrl-C does not wait for a running node
    else process.exit(INTERRUPTED);
  };
  for (const name of STOP_SIGNALS) process.on(name, interrupt);
  try {
    const commands = commandsWith(startService, startWorker, storeRunners);
    const begin = (chosen: Command) => {
      command = chosen;
    };
    return await dispatch(argv, terminal, controller.signal, urgent, commands, begin);
  } catch (error) {
    return report(error, terminal, controller.signal);
  } finally {
    for (const name of STOP_SIGNALS) process.off(name, interrupt);
    // at a normal exit Node restores the terminal, and aborts where the terminal is gone
    if (isHungUp && hasTerminal()) {
      process.kill(process.pid, HANG_UP);
    }
  }
}

const hasTerminal = () => [process.stdin, process.stdout, process.stderr].some(({ isTTY }) => isTTY);

/** A run or check that nobody reads to the end has not succeeded; a listing has. */
const ownTerminal = (argv: readonly string[]) =>
  processTerminal(["render", "verify", "test"].includes(argv[0] ?? "") ? 1 : 0);

async function dispatch(
  argv: readonly string[],
  terminal: Terminal,
  signal: AbortSignal,
  urgent: () => AbortSignal,
  commands: Commands,
  begin: (command: Command) => void,
): Promise<number> {
  const [name, ...rest] = argv;
  if (name === "--version" || name === "-v" || rest[0] === "--version") {
    terminal.out(`${packageVersion()}\n`);
    return 0;
  }
  if (name === undefined || name === "--help" || name === "-h" || name === "help") {
    const text = overview(commands);
    if (name !== undefined) terminal.out(text);
    else terminal.err(text);
    return name === undefined ? 2 : 0;
  }
  const command = loadCommand(name, commands);
  const args = readArguments(command, rest);
  if (args.flag("help")) {
    terminal.out([`Usage: latentkit ${command.usage}`, "", command.summary, "", ...command.help, ""].join("\n"));
    return 0;
  }
  await warnOfVariables(terminal);
  begin(command);
  return await command.run(args, terminal, signal, urgent);
}

/** Warns of misspelt variables, which set nothing. */
async function warnOfVariables({ env, err }: Terminal): Promise<void> {
  // loads the configuration's schema only where there is a variable to check
  if (!Object.keys(env).some((name) => name.startsWith("LATENTKIT_"))) return;
  const { unknownVariables } = await import("../render/config/load-config.js");
  for (const sentence of unknownVariables(env)) err(`Warning: ${sentence}\n`);
}

function loadCommand(name: string, commands: Commands): Command {
  if (Object.hasOwn(commands, name)) return commands[name]!();
  const names = Object.keys(commands);
  const { suggestion, hint } = suggest(name, names);
  const help = hint === "" ? ` Expected one of ${names.join(", ")}.` : hint;
  throw new LatentkitError("usage.invalid", `Unknown command "${name}".${help}`, { suggestion });
}

function overview(commands: Commands): string {
  const loaded = Object.values(commands).map((command) => command());
  const width = Math.max(...loaded.map(({ usage }) => usage.length));
  const lines = loaded.map(({ usage, summary }) => `  latentkit ${usage.padEnd(width)}  ${summary}`);
  return [
    "Runs ComfyUI graphs inside Node.js.",
    "",
    ...lines,
    "",
    "latentkit COMMAND --help shows a command's options.",
    "",
  ].join("\n");
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
