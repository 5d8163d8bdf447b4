import type { Clock } from "../../clock.js";
import { HookError } from "../../hook-error.js";
import type { Runs } from "../../types.js";
import type { Route } from "../call.js";
import type { HookContext } from "../context.js";
import { createOpenApi, openApiBytes } from "../openapi.js";
import { sendBytes, sendJson } from "../problem.js";

const PING_MS = 2000;

/** Liveness, readiness, metrics and the description of the API: open to all, they tell nothing of any run. */
export function probeRoutes(context: HookContext): Route[] {
  const { runs, metrics, clock, config } = context;
  const openApi = openApiBytes(createOpenApi(config.limits));
  const probe = (status: string) => ({ status: 200, body: { ok: true, status } });
  return [
    {
      name: "health",
      paths: ["/health"],
      access: "open",
      handlers: { GET: ({ req, res }) => sendJson(req, res, probe("alive")) },
    },
    {
      name: "ready",
      paths: ["/ready"],
      access: "open",
      handlers: {
        async GET({ req, res }) {
          if (runs.closing) throw new HookError("shutting_down");
          await pingInTime(runs, clock);
          sendJson(req, res, probe("ready"));
        },
      },
    },
    {
      name: "metrics",
      paths: ["/metrics"],
      access: "open",
      handlers: {
        async GET({ req, res }) {
          const text = await metrics.text();
          res.writeHead(200, { "Content-Type": metrics.contentType, "Cache-Control": "no-store" });
          res.end(req.method === "HEAD" ? undefined : text);
        },
      },
    },
    {
      name: "openapi",
      paths: ["/openapi.json"],
      access: "open",
      handlers: {
        GET({ req, res }) {
          sendBytes(req, res, { status: 200, bytes: openApi(req.baseUrl || "/") });
        },
      },
    },
  ];
}

/** A store that hangs is as good as one that is down. */
async function pingInTime(runs: Runs, clock: Clock): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const timer = clock.setTimer(PING_MS, () => reject(new HookError("store_unavailable")));
    runs
      .ping()
      .then(resolve, reject)
      .finally(() => timer.cancel());
  });
}
