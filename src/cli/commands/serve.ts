import { LatentkitError } from "../../base/errors.js";
import { type Config, hideSecrets } from "../../render/config/config.js";
import { loadConfig } from "../../render/config/load-config.js";
import type { Command } from "../command.js";
import { hostOptions, modelsOf } from "../host.js";
import { deviceOf, networkOf } from "../render-options.js";
import type { Terminal } from "../terminal.js";

/** The function that starts the service, as far as this command needs it; bin/latentkit.mjs passes the real one. */
export type StartService = (
  config: Config,
  options: { log: (line: string) => void },
) => Promise<{
  readonly url: string;
  readonly hasToken: boolean;
  /** Logs an error that no caller awaited. */
  fault(what: string, error: unknown): void;
  /** Logs an error that nobody could catch, and fails its run. */
  crash(error: unknown): void;
  close(): Promise<void>;
}>;

const EXIT_DELAY_MS = 500;
const TOKEN_VARIABLE = "LATENTKIT_CHANNELS_WEB_HOOKS_TOKEN";

export const serveCommand = (startService: StartService): Command => ({
  usage: "serve",
  summary: "Serve HTTP: start runs and stream their events.",
  help: [
    "  --config FILE    configuration, YAML or JSON",
    "  --host ADDRESS   address to listen on (127.0.0.1); one that others can reach needs a hook token",
    "  --port PORT      port to listen on, 0 for any free one (8188)",
    "  --models DIR     ComfyUI's models folder, or an extra_model_paths.yaml; repeatable",
    "  --device DEVICE  device for tensors: auto, cpu or cuda:N (auto)",
    "  --offline        refuse graphs whose nodes use the network or a key",
    "  --json           print one event a line on stdout: listening, stopped",
    "  --quiet          print no messages; logs still go to stderr",
    "",
    `${TOKEN_VARIABLE} sets the hook token.`,
    "SIGTERM or Ctrl-C lets running runs end, a second one stops at once.",
  ],
  options: {
    config: { type: "string" },
    host: { type: "string" },
    port: { type: "string" },
    ...hostOptions,
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
        models: modelsOf(args),
      },
      env: terminal.env,
    });
    const print = (text: string) => (args.flag("quiet") ? undefined : terminal.err(text));
    const emit = (event: object) => (args.flag("json") ? terminal.out(`${JSON.stringify(event)}\n`) : undefined);
    const service = await startService(config, { log: (line) => terminal.err(line) });
    // a rejected promise that an agent forgot must not end the runs of others
    const onRejection = (reason: unknown) => service.fault("unhandled rejection", reason);
    process.on("unhandledRejection", onRejection);
    // the state after an uncaught error is unknown: the other runs may end, then the process does
    const crashed = new AbortController();
    const onException = (error: unknown) => {
      service.crash(error);
      crashed.abort();
    };
    process.on("uncaughtException", onException);
    print(greeting(service, config, terminal));
    emit({ type: "listening", url: service.url });
    await Promise.race([aborted(signal), aborted(crashed.signal)]);
    if (crashed.signal.aborted) terminal.err("An agent threw an error that nothing could catch; the log has it.\n");
    print(`Stopping: running runs have up to ${config.limits.drain_seconds} s to end.\n`);
    await service.close();
    process.off("unhandledRejection", onRejection);
    process.off("uncaughtException", onException);
    emit({ type: "stopped" });
    // an agent's leftover timers and sockets must not keep the process alive
    setTimeout(() => process.exit(), EXIT_DELAY_MS).unref();
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

/** The service's URL, and a command line that starts a run. The token itself is never printed. */
function greeting(service: { url: string; hasToken: boolean }, config: Config, { env }: Terminal): string {
  const { url, hasToken } = service;
  const lines = [`latentkit serves hooks on ${url}`];
  if (!hasToken) {
    lines.push(
      "No hook token is set, so every hook endpoint responds 503. Set one and start again:",
      `  export ${TOKEN_VARIABLE}=$(node -p "crypto.randomBytes(24).toString('hex')")`,
    );
  } else {
    const variable = env[TOKEN_VARIABLE] ? TOKEN_VARIABLE : "HOOKS_TOKEN";
    if (variable === "HOOKS_TOKEN") lines.push("Set HOOKS_TOKEN to your channels.web.hooks_token for this command:");
    const post = `curl -s -H "Authorization: Bearer $${variable}" -H "Content-Type: application/json"`;
    const watch = `sed -E 's|.*"stream_url":"([^"]*)".*|${url}\\1|' | xargs curl -sN`;
    lines.push(
      "To start a run and watch it:",
      `  ${post} -d '{"message":"a quiet lake"}' ${url}/hooks/agent | ${watch}`,
    );
  }
  const { output_dir, files = output_dir, store } = hideSecrets(config) as Config;
  lines.push(`Files are written to ${files}, runs are stored in ${store}.`);
  return `${lines.join("\n")}\n`;
}
