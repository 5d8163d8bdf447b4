import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { RunningService } from "latentkit/service";
import { temporaryFolder } from "../folders.js";
import { packaged } from "../process/package.js";
import { TOKEN } from "./open-page.js";

/**
 * An agent that takes its time: "work N" emits N steps of a node and waits 50 ms before each, before the last one also for
 * the file that "work N until FILE" names; "hold" waits for its signal, "fail" throws.
 */
const AGENT = `import { existsSync } from "node:fs";
export default async function agent({ message }, { signal, emit }) {
  if (message === "fail") throw new Error("The agent failed, as asked.");
  const [, steps = 0, file] = /^work (\\d+)(?: until (.+))?$/.exec(message) ?? [];
  emit("node_start", { node: "1", class_type: "Slow" });
  for (let value = 1; value <= steps; value++) {
    do {
      await new Promise((resolve) => setTimeout(resolve, 50));
      signal.throwIfAborted();
    } while (file && value === Number(steps) && !existsSync(file));
    emit("progress", { node: "1", value, max: Number(steps) });
  }
  while (message === "hold") {
    await new Promise((resolve) => setTimeout(resolve, 20));
    signal.throwIfAborted();
  }
  emit("node_done", { node: "1", class_type: "Slow", ms: 50 * steps, done: 1, nodes: 1 });
  return { response: message };
}
`;

type Service = typeof import("latentkit/service");

/** Services with a page, in this process, that end with the test. Call inside `describe`. */
export function pageServiceStarter() {
  const folder = temporaryFolder();
  const open: RunningService[] = [];
  afterEach(async () => {
    for (const service of open.splice(0)) await service.close(0);
  });
  /** Starts a service; `isSlow`: with the agent above in place of the example graph. */
  const start = async (config: object = {}, { isSlow = false, token = TOKEN as string | null } = {}) => {
    const module = join(folder(), "agent.mjs");
    writeFileSync(module, AGENT);
    const { startService } = (await import(packaged("service/index.js"))) as Service;
    const service = await startService(
      {
        port: 0,
        store: "memory:",
        output_dir: join(folder(), "out"),
        channels: { web: { hooks_token: token, hooks_default_session_key: "hook:ingress" } },
        ...(isSlow && { agent: { module } }),
        ...config,
      },
      { log: () => {} },
    );
    open.push(service);
    return service;
  };
  return { start, folder };
}

/** Starts a run with a message, and returns its id. */
export async function postMessage(url: string, message: string, more: object = {}): Promise<string> {
  const response = await fetch(`${url}/hooks/agent`, {
    method: "POST",
    headers: { Authorization: `Bearer ${TOKEN}`, "Content-Type": "application/json" },
    body: JSON.stringify({ message, ...more }),
  });
  const { run_id } = (await response.json()) as { run_id: string };
  return run_id;
}
