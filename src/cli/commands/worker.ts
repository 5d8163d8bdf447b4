import { LatentkitError } from "../../base/errors.js";
import type { Config } from "../../render/config/config.js";
import { loadConfig } from "../../render/config/load-config.js";
import { shownAddress } from "../../render/config/shown-address.js";
import type { Command } from "../command.js";
import { modelFlags, networkHelp, networkOptions } from "../host.js";
import { portOf } from "../port.js";
import { deviceOf, networkOf } from "../render-options.js";
import { type Stoppable, untilStopped } from "../until-stopped.js";

/** The function that starts a worker, as far as this command needs it; bin/latentkit.mjs passes the real one. */
export type StartWorker = (
  config: Config,
  options: { log: (line: string) => void },
) => Promise<Stoppable & { readonly url: string | undefined }>;

export const workerCommand = (startWorker: StartWorker): Command => ({
  usage: "worker",
  summary: "Claim runs from a PostgreSQL store and render them.",
  help: [
    "  --config FILE    configuration, YAML or JSON: the agent, its folders and limits",
    "  --store URL      postgres://USER:PASSWORD@HOST/DATABASE, that of the front ends",
    "  --concurrency N  runs at the same time (4)",
    "  --port N         port for /health, /ready and /metrics, 0 to 65535; absent: the worker listens nowhere",
    "  --host ADDRESS   address of that port (127.0.0.1)",
    "  --models DIR     ComfyUI's models folder, or an extra_model_paths.yaml; repeatable",
    ...networkHelp(19),
    "  --device DEVICE  device for tensors: auto, cpu or cuda:N (auto)",
    "  --offline        refuse graphs whose nodes use the network or a key",
    "  --json           print one event a line on stdout: working, stopped",
    "  --quiet          print no messages; logs still go to stderr",
    "",
    "LATENTKIT_STORE sets the store where others can see the command line.",
    "SIGTERM or Ctrl-C lets running runs end and gives up those that do not, a second one stops at once.",
  ],
  options: {
    config: { type: "string" },
    store: { type: "string" },
    concurrency: { type: "string" },
    port: { type: "string" },
    host: { type: "string" },
    ...networkOptions,
    device: { type: "string" },
    offline: { type: "boolean" },
    json: { type: "boolean" },
    quiet: { type: "boolean" },
  },
  positionals: { min: 0, max: 0 },
  run: async (args, terminal, signal) => {
    const running = concurrencyOf(args.value("concurrency"));
    const config = loadConfig({
      file: args.value("config"),
      flags: {
        store: args.value("store"),
        host: args.value("host"),
        worker_port: portOf(args.value("port")),
        limits: running === undefined ? undefined : { running },
        device: deviceOf(args),
        allow_network: networkOf(args),
        ...modelFlags(args),
      },
      env: terminal.env,
    });
    const print = (text: string) => (args.flag("quiet") ? undefined : terminal.err(text));
    const emit = (event: object) => (args.flag("json") ? terminal.out(`${JSON.stringify(event)}\n`) : undefined);
    const worker = await startWorker(config, { log: (line) => terminal.err(line) });
    const { limits, output_dir, store } = config;
    print(
      `latentkit claims runs from ${shownAddress(store)}, ${limits.running} at the same time; files go to ${output_dir}.\n`,
    );
    if (worker.url !== undefined) print(`Probes and metrics: ${worker.url}\n`);
    emit({ type: "working", url: worker.url });
    const code = await untilStopped(worker, terminal, signal, () =>
      print(`Stopping: running runs have up to ${limits.drain_seconds} s to end. A second Ctrl-C stops at once.\n`),
    );
    emit({ type: "stopped" });
    return code;
  },
});

function concurrencyOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^[1-9]\d{0,3}$/.test(text)) return Number(text);
  throw new LatentkitError("usage.invalid", `--concurrency: expected 1 to 9999, received ${JSON.stringify(text)}.`);
}
