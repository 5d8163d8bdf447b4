import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { LatentkitError } from "../../base/errors.js";
import type { Config } from "../../render/config/config.js";
import { loadConfig } from "../../render/config/load-config.js";
import { shownAddress } from "../../render/config/secrets.js";
import type { RunningService } from "../../service/server/start.js";
import { deviceFlags } from "../host.js";
import type { Arguments } from "../table/arguments.js";
import type { ArgumentsOf, Run } from "../table/commands.js";
import { harmless, type Terminal } from "../terminal.js";

const TOKEN_VARIABLE = "LATENTKIT_CHANNELS_WEB_HOOKS_TOKEN";

export const run: Run<"serve"> = async (args, terminal, signal) => {
  const read = () => loadServeConfig(args, terminal);
  const config = read();
  if (args.get("open") && !config.page) {
    throw new LatentkitError("usage.invalid", "--open needs the page, but the configuration has page: false.");
  }
  const ownToken = args.get("open") && !hasHookToken(config) ? randomBytes(24).toString("hex") : undefined;
  const lines = linesOf(args, terminal);
  const { startService } = await import("../../service/server/start.js");
  const service = await startService(withToken(config, ownToken), { log: (line) => terminal.err(line) });
  lines.print(greeting(service, config, terminal, ownToken !== undefined));
  lines.emit({ type: "listening", url: service.url });
  if (args.get("open")) openPage(service.url, ownToken, terminal, lines.print);
  const reload = () => {
    if (!signal.aborted) reloadGraphs(service, read, terminal);
  };
  process.on("SIGHUP", reload);
  const code = await untilStopped(service, terminal, signal, config.limits.drain_seconds, lines);
  process.off("SIGHUP", reload);
  return code;
};

const loadServeConfig = (args: ArgumentsOf<"serve">, { env }: Terminal): Config =>
  loadConfig({
    file: args.get("config"),
    flags: {
      host: args.get("host"),
      port: args.get("port"),
      store: args.get("store"),
      render: args.get("no-render") ? false : undefined,
      agent: args.has("graph") ? { graphs: args.get("graph") } : undefined,
      ...deviceFlags(args),
    },
    env,
  });

/** Puts the graphs of the configuration's files in their place; a wrong one changes nothing. */
function reloadGraphs(service: RunningService, read: () => Config, terminal: Terminal): void {
  try {
    service.reload(read());
    terminal.err("Graphs reloaded.\n");
  } catch (error) {
    if (!(error instanceof LatentkitError)) throw error;
    terminal.err(`Graphs not reloaded: ${harmless(error.message)}\n`);
  }
}

/** Programs that open an address in the user's browser. */
const OPENERS: { readonly [Platform in NodeJS.Platform]?: readonly [program: string, ...args: string[]] } = {
  darwin: ["open"],
  // the first text is the window's title
  win32: ["cmd", "/c", "start", '""'],
};

// The token is for this start only: the list of processes may show the address to other users.
/** Opens the page in the user's browser, with the token of this start; says what to do if no program opens it. */
function openPage(url: string, token: string | undefined, { env }: Terminal, print: (text: string) => void): void {
  const [program, ...args] = OPENERS[process.platform] ?? ["xdg-open"];
  // browsers send no fragment, and the page removes it from its address
  const address = token === undefined ? `${url}/` : `${url}/#token=${token}`;
  const child = spawn(program, [...args, address], { env, stdio: "ignore", detached: true });
  const advice = token === undefined ? "open" : "set a hook token as shown above, start again, and open";
  const advise = (fault: string) => print(`${program} ${fault}: ${advice} ${url}/ in a browser.\n`);
  child.once("error", () => advise("was not found"));
  // on a machine without a screen
  child.once("exit", (code) => (code === 0 ? undefined : advise("did not open a browser")));
  child.unref();
}

const hasHookToken = ({ channels }: Config): boolean =>
  [channels.web.hooks_token].flat().some((token) => typeof token === "string" && token.trim() !== "");

function withToken(config: Config, token: string | undefined): Config {
  if (token === undefined) return config;
  const { channels } = config;
  return { ...config, channels: { ...channels, web: { ...channels.web, hooks_token: token } } };
}

/** The service's URL, and a command line that starts a run. The token itself is never printed. */
function greeting(
  { url, hasToken, takesText }: RunningService,
  config: Config,
  { env }: Terminal,
  isTokenOfThisStart: boolean,
): string {
  const lines = [`latentkit is listening on ${url}`];
  const setToken = `  export ${TOKEN_VARIABLE}=$(node -p "crypto.randomBytes(24).toString('hex')")`;
  if (isTokenOfThisStart) {
    lines.push(
      "The page opens with a hook token that is valid until this service stops. To set a lasting one, start again with:",
      setToken,
    );
  } else if (!hasToken) {
    lines.push(
      "No hook token is set, so every hook endpoint responds 503. Start again with --open for the page alone, or set a token:",
      setToken,
    );
  } else {
    const variable = env[TOKEN_VARIABLE] ? TOKEN_VARIABLE : "HOOKS_TOKEN";
    if (variable === "HOOKS_TOKEN") lines.push("Set HOOKS_TOKEN to your channels.web.hooks_token for this command:");
    const post = `curl -s -H "Authorization: Bearer $${variable}" -H "Content-Type: application/json"`;
    const watch = `sed -E 's|.*"stream_url":"([^"]*)".*|${url}\\1|' | xargs curl -sN`;
    lines.push(
      "To start a run and watch it:",
      `  ${post} -d '{"message":"${takesText ? "a quiet lake" : "{}"}"}' ${url}/hooks/agent | ${watch}`,
    );
  }
  if (hasToken && config.page && !isTokenOfThisStart)
    lines.push(`To see runs and pictures, open ${url}/ in a browser, with the token.`);
  const { render, output_dir, store, files } = config;
  const target = files === undefined ? output_dir : shownAddress(files);
  const work = render ? `Files are written to ${target}` : "Runs are rendered by workers";
  lines.push(`${work}, runs are stored in ${shownAddress(store)}.`);
  return `${lines.join("\n")}\n`;
}

/** A service or worker, as far as its command ends it. */
type Stoppable = Pick<RunningService, "fault" | "crash" | "close">;

const EXIT_DELAY_MS = 500;

/** Lines of a command that runs until it is stopped: for people with neither --quiet, for programs with --json. */
export const linesOf = (args: Arguments<{ readonly quiet: boolean; readonly json: boolean }>, terminal: Terminal) => ({
  print: (text: string) => (args.get("quiet") ? undefined : terminal.err(text)),
  emit: (event: object) => (args.get("json") ? terminal.out(`${JSON.stringify(event)}\n`) : undefined),
});

/**
 * Waits for a signal or an error that nothing catches, then closes the process's part, which has `drainSeconds` for its
 * running runs. Returns the exit code.
 */
export async function untilStopped(
  part: Stoppable,
  terminal: Terminal,
  signal: AbortSignal,
  drainSeconds: number,
  { print, emit }: ReturnType<typeof linesOf>,
): Promise<number> {
  // a rejected promise that an agent forgot must not end the runs of others
  const onRejection = (reason: unknown) => part.fault("unhandled rejection", reason);
  process.on("unhandledRejection", onRejection);
  // the state after an uncaught error is unknown: the other runs may end, then the process does
  const crashed = new AbortController();
  const onException = (error: unknown) => {
    part.crash(error);
    crashed.abort();
  };
  process.on("uncaughtException", onException);
  await Promise.race([aborted(signal), aborted(crashed.signal)]);
  if (crashed.signal.aborted) terminal.err("Uncaught exception in an agent; see the log.\n");
  print(`Stopping: running runs have up to ${drainSeconds} s to finish. Press Ctrl-C again to stop immediately.\n`);
  await part.close();
  emit({ type: "stopped" });
  process.off("unhandledRejection", onRejection);
  process.off("uncaughtException", onException);
  // an agent's leftover timers and sockets must not keep the process alive
  setTimeout(() => process.exit(), EXIT_DELAY_MS).unref();
  return crashed.signal.aborted ? 1 : 0;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
