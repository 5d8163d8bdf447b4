import { PassThrough } from "node:stream";
import { createHookService, type HookService } from "latentkit/hooks";
import { createLogger, createServer, type ListeningServer } from "latentkit/service";
import type { Agent } from "#src/service/agent/agent.js";
import type { Clock } from "#src/service/hooks/clock.js";
import type { HookServiceOptions } from "#src/service/hooks/hook-service.js";
import { FakeClock } from "./fake-clock.js";
import { until as waitUntil } from "./hook-runs.js";

export const TOKEN = "correct-horse-battery-staple";

/** Answers at once with the message; "hold" waits for its signal, "emit N" sends N deltas. */
export const scriptedAgent: Agent = async ({ message }, { signal, emit }) => {
  const [, count] = /^emit (\d+)$/m.exec(message) ?? [];
  for (let i = 1; i <= Number(count ?? 0); i++) emit("delta", { delta: `d${i}` });
  if (/^hold$/m.test(message)) {
    await new Promise<void>((_, reject) => {
      signal.addEventListener("abort", () => reject(new Error("aborted")), { once: true });
    });
  }
  return { response: message };
};

export interface RunningService {
  readonly hooks: HookService;
  readonly listening: ListeningServer;
  readonly url: string;
  readonly port: number;
  /** Everything logged so far, as text. */
  log(): string;
  /** POST of JSON with the good token; `headers` are added or replace. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>;
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  /** Starts a run and returns its payload. */
  start(message: string, more?: object): Promise<{ run_id: string; stream_url: string; status_url: string }>;
}

export const bearer = { authorization: `Bearer ${TOKEN}` };

/** Services that start within a test and stop after it. Call inside `describe`. */
export function serviceStarter(): (
  options?: Partial<HookServiceOptions> & { config?: HookServiceOptions["config"] },
) => Promise<RunningService> {
  const open: { listening: ListeningServer; clock: Clock | undefined }[] = [];
  afterEach(async () => {
    for (const { listening, clock } of open.splice(0)) {
      const closed = listening.close(0);
      if (clock instanceof FakeClock) await clock.advance(10_000);
      await closed;
    }
  });
  return async (options = {}) => {
    // one session for all runs, so that tests know which waits for which
    const config = { hooks_token: TOKEN, hooks_default_session_key: "hook:ingress", ...options.config };
    const sink = new PassThrough();
    const logged: Buffer[] = [];
    sink.on("data", (chunk: Buffer) => logged.push(chunk));
    const logger = createLogger({ level: "debug", destination: sink });
    const hooks = createHookService({ agent: scriptedAgent, logger, ...options, config });
    const listening = createServer({ hooks, port: 0, limits: config.limits, logger });
    open.push({ listening, clock: options.clock });
    const { url, port } = await listening.listen();
    const get = (path: string, headers = {}) => fetch(url + path, { headers: { ...bearer, ...headers } });
    const post = (path: string, body: unknown, headers = {}) =>
      fetch(url + path, {
        method: "POST",
        headers: { ...bearer, "content-type": "application/json", ...headers },
        body: isRaw(body) ? body : JSON.stringify(body),
      });
    return {
      hooks,
      listening,
      url,
      port,
      log: () => Buffer.concat(logged).toString(),
      post,
      get,
      async start(message, more = {}) {
        const response = await post("/hooks/agent", { message, ...more });
        if (response.status !== 200) throw new Error(`start: status ${response.status}: ${await response.text()}`);
        return (await response.json()) as { run_id: string; stream_url: string; status_url: string };
      },
    };
  };
}

const isRaw = (body: unknown): body is string | Uint8Array<ArrayBuffer> =>
  typeof body === "string" || body instanceof Uint8Array;

/** Waits until something holds. */
export const until = (isSo: () => boolean | Promise<boolean>, what = "the condition"): Promise<void> =>
  waitUntil(isSo, what);
