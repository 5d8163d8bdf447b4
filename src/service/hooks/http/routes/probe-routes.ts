import { lazy } from "../../../../base/lazy-packages.js";
import type { Clock } from "../../clock.js";
import { HookError } from "../../hook-error.js";
import type { Runs } from "../../runs/create-runs.js";
import { RateWindow } from "../access/rate-window.js";
import type { Access, Route } from "../call.js";
import type { HookContext } from "../context.js";
import { createOpenApi } from "../openapi.js";
import { sendBytes, sendJson } from "../responses.js";

const PING_MS = 2000;
/** Most checks of the store in a time window: /ready is open to all. */
const CHECKS = { limit: 2, windowMs: 1000 };
/** Most cached documents: a router that is mounted at a pattern has any number of mount paths. */
const MOST_MOUNT_PATHS = 8;

/** Liveness, readiness, metrics and the API's description. They reveal no run; open to all unless configured otherwise. */
export function probeRoutes(context: HookContext): Route[] {
  const { runs, metrics, clock, config } = context;
  const { web } = config;
  const openApi = lazy(() => openApiBytes(createOpenApi(config.limits, web)));
  const checkStore = sharedCheck(runs, clock);
  const probe = (status: string) => ({ status: 200, body: { ok: true, status } });
  const routes: (Omit<Route, "access"> & { access: Access | "none" })[] = [
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
          await checkStore();
          sendJson(req, res, probe("ready"));
        },
      },
    },
    {
      name: "metrics",
      paths: ["/metrics"],
      access: web.metrics,
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
      access: web.openapi,
      handlers: {
        GET({ req, res }) {
          sendBytes(req, res, { status: 200, bytes: openApi()(req.baseUrl || "/") });
        },
      },
    },
  ];
  return routes.filter((route): route is Route => route.access !== "none");
}

/** Checks whether the store works; callers that come too often share the last result. */
function sharedCheck(runs: Runs, clock: Clock): () => Promise<void> {
  const checks = new RateWindow({ ...CHECKS, clock });
  let pinging: Promise<void> | undefined;
  let last: Promise<void> | undefined;
  // one at a time: a store that hangs gets no further check
  const ping = () => {
    pinging ??= runs.ping().finally(() => {
      pinging = undefined;
    });
    return pinging;
  };
  return () => {
    if (last === undefined || checks.waitMs("") <= 0) {
      checks.count("");
      last = inTime(ping(), clock);
    }
    return last;
  };
}

/** Treats a store that hangs as unavailable. */
function inTime(pinging: Promise<void>, clock: Clock): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    const timer = clock.setTimer(PING_MS, () => reject(new HookError("store_unavailable")));
    pinging.then(resolve, reject).finally(() => timer.cancel());
  });
}

/** Returns the document as JSON for a router mounted at `url`, cached by mount path. */
function openApiBytes(document: ReturnType<typeof createOpenApi>): (url: string) => Buffer {
  const cache = new Map<string, Buffer>();
  return (url) => {
    const bytes = cache.get(url) ?? Buffer.from(JSON.stringify({ ...document, servers: [{ url }] }));
    if (cache.size < MOST_MOUNT_PATHS) cache.set(url, bytes);
    return bytes;
  };
}
