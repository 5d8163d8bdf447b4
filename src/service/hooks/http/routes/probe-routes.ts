import { loadZod } from "../../../../base/lazy.js";
import { type Clock, within } from "../../clock.js";
import { HookError } from "../../hook-error.js";
import { RateWindow } from "../access/rates.js";
import type { Route } from "../call.js";
import type { ProbeContext } from "../context.js";
import { sendJson } from "../responses.js";

const PING_MS = 2000;
/** Most checks of the store in a time window: /ready is open to all. */
const CHECKS = { limit: 2, windowMs: 1000 };

/** Liveness, readiness and metrics. They reveal no run; open to all unless configured otherwise. */
export function probeRoutes({ runs, metrics, clock, config }: ProbeContext): Route[] {
  const checkStore = sharedCheck(runs, clock);
  const probe = (status: string) => ({ status: 200, body: { ok: true, status } });
  const { z } = loadZod();
  const json = z.object({ ok: z.literal(true), status: z.string() }).meta({ id: "Probe" });
  const access = config.web.metrics;
  const probes: Route[] = [
    {
      name: "health",
      paths: ["/health"],
      access: "open",
      method: "GET",
      summary: "Tell that the process is alive",
      responses: { 200: { json } },
      handle: ({ req, res }) => sendJson(req, res, probe("alive")),
    },
    {
      name: "ready",
      paths: ["/ready"],
      access: "open",
      method: "GET",
      summary: "Tell whether runs can be started",
      responses: { 200: { json } },
      refusals: ["shutting_down", "store_unavailable"],
      async handle({ req, res }) {
        if (runs.closing) throw new HookError("shutting_down");
        await checkStore();
        sendJson(req, res, probe("ready"));
      },
    },
  ];
  if (access === "none") return probes;
  return [
    ...probes,
    {
      name: "metrics",
      paths: ["/metrics"],
      access,
      method: "GET",
      summary: "Measure the service, for Prometheus",
      responses: { 200: { type: "text/plain" } },
      async handle({ req, res }) {
        const text = await metrics.text();
        res.writeHead(200, { "Content-Type": metrics.contentType, "Cache-Control": "no-store" });
        res.end(req.method === "HEAD" ? undefined : text);
      },
    },
  ];
}

/** Checks whether the store works; callers that come too often share the last result. */
function sharedCheck(runs: ProbeContext["runs"], clock: Clock): () => Promise<void> {
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
async function inTime(pinging: Promise<void>, clock: Clock): Promise<void> {
  if (!(await within(clock, PING_MS, pinging))) throw new HookError("store_unavailable");
}
