import { LatentkitError } from "../errors.js";
import type { Config } from "../render/config/config.js";
import { loadConfig } from "../render/config/load-config.js";
import type { Command } from "./command.js";
import { deviceOf, networkOf } from "./render-options.js";
import type { Terminal } from "./terminal.js";

/** The service as this command needs it; whoever starts the command line hands in the real one. */
export type StartService = (
  config: Config,
  options: { log: (line: string) => void },
) => Promise<{
  readonly url: string;
  readonly hasToken: boolean;
  /** Logs what no caller awaited. */
  fault(what: string, error: unknown): void;
  /** As `fault`, for what nobody could catch: its run fails. */
  crash(error: unknown): void;
  close(): Promise<void>;
}>;

const LAST_WORDS_MS = 500;
const TOKEN_VARIABLE = "LATENTKIT_CHANNELS_WEB_HOOKS_TOKEN";

export const serveCommand = (startService: StartService): Command => ({
  usage: "serve",
  summary: "Start runs over HTTP and stream what they do.",
  help: [
    "  --config FILE   configuration, YAML or JSON",
    "  --host ADDRESS  where to listen (127.0.0.1); other than loopback needs a hook token",
    "  --port PORT     0 takes a free one (8188)",
    "  --device DEVICE where tensors are computed: auto, cpu or cuda:N (auto)",
    "  --offline       refuse graphs whose nodes reach the network or use a key",
    "  --json          one event a line on stdout: listening, stopped",
    "  --quiet         no words for people; logs still go to stderr",
    "",
    `${TOKEN_VARIABLE} sets the hook token. SIGTERM or Ctrl-C lets`,
    "running runs end, a second one stops at once.",
  ],
  options: {
    config: { type: "string" },
    host: { type: "string" },
    port: { type: "string" },
    device: { type: "string" },
    offline: { type: "boolean" },
    json: { type: "boolean" },
    quiet: { type: "boolean" },
  },
  positionals: { min: 0, max: 0 },
  run: async (args, terminal, signal) => {
    const config = loadConfig({
      file: args.value("config"),
      flags: {
        host: args.value("host"),
        port: portOf(args.value("port")),
        device: deviceOf(args),
        allow_network: networkOf(args),
      },
      env: terminal.env,
    });
    const say = (text: string) => (args.flag("quiet") ? undefined : terminal.err(text));
    const tell = (event: object) => (args.flag("json") ? terminal.out(`${JSON.stringify(event)}\n`) : undefined);
    const service = await startService(config, { log: (line) => terminal.err(line) });
    // an agent's forgotten promise must not end everybody's runs
    const onRejection = (reason: unknown) => service.fault("unhandled rejection", reason);
    process.on("unhandledRejection", onRejection);
    // what was half done when it was thrown nobody knows: the other runs may end, then the process does
    const crashed = new AbortController();
    const onException = (error: unknown) => {
      service.crash(error);
      crashed.abort();
    };
    process.on("uncaughtException", onException);
    say(greeting(service, config, terminal));
    tell({ type: "listening", url: service.url });
    await Promise.race([aborted(signal), aborted(crashed.signal)]);
    if (crashed.signal.aborted) terminal.err("An agent threw where nobody could catch it, see the log.\n");
    say(`Stopping; runs have up to ${config.limits.drain_seconds} s to end.\n`);
    await service.close();
    process.off("unhandledRejection", onRejection);
    process.off("uncaughtException", onException);
    tell({ type: "stopped" });
    // timers and sockets that an agent left behind keep no process alive
    setTimeout(() => process.exit(), LAST_WORDS_MS).unref();
    return crashed.signal.aborted ? 1 : 0;
  },
});

function portOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65535) return Number(text);
  throw new LatentkitError("usage.invalid", `--port: expected 0 to 65535, received ${JSON.stringify(text)}.`);
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** The address, and a line to paste. The token itself is never printed. */
function greeting(service: { url: string; hasToken: boolean }, config: Config, { env }: Terminal): string {
  const { url, hasToken } = service;
  const lines = [`latentkit serves hooks on ${url}`];
  if (!hasToken) {
    lines.push(
      "No hook token is set, so every hook endpoint answers 503. Set one and start again:",
      `  export ${TOKEN_VARIABLE}=$(node -p "crypto.randomBytes(24).toString('hex')")`,
    );
  } else {
    const variable = env[TOKEN_VARIABLE] ? TOKEN_VARIABLE : "HOOKS_TOKEN";
    if (variable === "HOOKS_TOKEN") lines.push("With HOOKS_TOKEN set to your channels.web.hooks_token:");
    const post = `curl -s -H "Authorization: Bearer $${variable}" -H "Content-Type: application/json"`;
    const watch = `sed -E 's|.*"stream_url":"([^"]*)".*|${url}\\1|' | xargs curl -sN`;
    lines.push("Start a run and watch it:", `  ${post} -d '{"message":"a quiet lake"}' ${url}/hooks/agent | ${watch}`);
  }
  lines.push(`Files go to ${config.output_dir}, runs to ${config.store}.`);
  return `${lines.join("\n")}\n`;
}
