import { loadConfig } from "../../render/config/load-config.js";
import { shownAddress } from "../../render/config/secrets.js";
import { modelFlags } from "../host.js";
import { deviceOf, networkOf } from "../render-options.js";
import type { Run } from "../table/commands.js";
import { untilStopped } from "../until-stopped.js";

export const run: Run<"worker"> = async (args, terminal, signal) => {
  const running = args.get("concurrency");
  const config = loadConfig({
    file: args.get("config"),
    flags: {
      store: args.get("store"),
      host: args.get("host"),
      worker_port: args.get("port"),
      limits: running === undefined ? undefined : { running },
      device: deviceOf(args),
      allow_network: networkOf(args),
      ...modelFlags(args),
    },
    env: terminal.env,
  });
  const print = (text: string) => (args.get("quiet") ? undefined : terminal.err(text));
  const emit = (event: object) => (args.get("json") ? terminal.out(`${JSON.stringify(event)}\n`) : undefined);
  const { startWorkerProcess } = await import("../../service/worker/start-worker.js");
  const worker = await startWorkerProcess(config, { log: (line) => terminal.err(line) });
  const { limits, output_dir, store } = config;
  print(
    `Claiming runs from ${shownAddress(store)}, up to ${limits.running} at a time; files are written to ${output_dir}.\n`,
  );
  if (worker.url !== undefined) print(`Probes and metrics: ${worker.url}\n`);
  emit({ type: "working", url: worker.url });
  const code = await untilStopped(worker, terminal, signal, () =>
    print(`Stopping: running runs have up to ${limits.drain_seconds} s to finish. Press Ctrl-C again to stop immediately.\n`),
  );
  emit({ type: "stopped" });
  return code;
};
