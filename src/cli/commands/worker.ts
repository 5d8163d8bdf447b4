import { loadConfig } from "../../render/config/load-config.js";
import { shownAddress } from "../../render/config/secrets.js";
import { deviceFlags } from "../host.js";
import type { Run } from "../table/commands.js";
import { linesOf, untilStopped } from "./serve.js";

export const run: Run<"worker"> = async (args, terminal, signal) => {
  const running = args.get("concurrency");
  const config = loadConfig({
    file: args.get("config"),
    flags: {
      store: args.get("store"),
      host: args.get("host"),
      worker_port: args.get("port"),
      limits: running === undefined ? undefined : { running },
      ...deviceFlags(args),
    },
    env: terminal.env,
  });
  const lines = linesOf(args, terminal);
  const { startWorkerProcess } = await import("../../service/worker/start-worker.js");
  const worker = await startWorkerProcess(config, { log: (line) => terminal.err(line) });
  const { limits, output_dir, store } = config;
  lines.print(
    `Claiming runs from ${shownAddress(store)}, up to ${limits.running} at a time; files are written to ${output_dir}.\n`,
  );
  if (worker.url !== undefined) lines.print(`Probes and metrics: ${worker.url}\n`);
  lines.emit({ type: "working", url: worker.url });
  return await untilStopped(worker, terminal, signal, limits.drain_seconds, lines);
};
