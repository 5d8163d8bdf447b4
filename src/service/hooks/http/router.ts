import type { NextFunction, Request, Response, Router } from "express";
import { loadExpress } from "../../../base/lazy-packages.js";
import { HookError, type HookErrorKind } from "../hook-error.js";
import { allowCrossOrigin } from "./access/cross-origin.js";
import { ClientGone } from "./body.js";
import { type Call, METHODS, type Route } from "./call.js";
import { enterConnection } from "./connection.js";
import type { ProbeContext } from "./context.js";
import { passGate } from "./gate.js";
import { prepareResponse } from "./linger.js";
import { SEND_ERROR } from "./send-error.js";

/** Route of requests with a path parameter that cannot be decoded. */
const UNKNOWN: Route = { name: "unknown", door: "hooks", paths: [], access: "open", methods: {} };

/** Refusals whose causes are logged. */
const FAULTS: ReadonlySet<HookErrorKind> = new Set(["internal", "store_unavailable", "files_unavailable"]);

// decisions 126, 127, 128
/**
 * Creates an Express router of the routes: exact paths, and JSON responses whatever the application's settings. All other
 * paths are left to the application, even those that only differ by case or a slash.
 */
export function createRouter(context: ProbeContext, routes: readonly Route[]): Router {
  const router = loadExpress().Router({ strict: true, caseSensitive: true });
  for (const route of routes) {
    router.all([...route.paths], (req, res) => handle(context, route, req, res));
  }
  // only for a path parameter that cannot be decoded
  router.use((_error: unknown, req: Request, res: Response, _next: NextFunction) => handle(context, UNKNOWN, req, res));
  return router;
}

async function handle(context: ProbeContext, route: Route, req: Request, res: Response): Promise<void> {
  const { clock, config } = context;
  if (!(await enterConnection(req, res, { clock, seconds: config.limits.slow_reader_seconds }))) return;
  const requestId = context.newId();
  res.setHeader("X-Request-Id", requestId);
  watch(context, route, requestId, req, res);
  await prepareResponse(req, res, clock);
  if (allowCrossOrigin(config.web, req, res, methodsOf(route))) return;
  try {
    const handler = handlerOf(route, req.method);
    const query = new URLSearchParams(/\?(.*)$/s.exec(req.url)?.[1] ?? "");
    const call = { req, res, requestId, query, params: pathParams(req) };
    await handler({ ...call, tokenId: passGate(context, route.access, call) });
  } catch (error) {
    refuse(context, route, { req, res, requestId }, error);
  }
}

function handlerOf(route: Route, method: string) {
  const allowed = methodsOf(route);
  if (allowed.length === 0) throw new HookError("not_found");
  const endpoint = route.methods[(method === "HEAD" ? "GET" : method) as (typeof METHODS)[number]];
  if (endpoint !== undefined && allowed.includes(method)) return endpoint.handle;
  throw new HookError("method_not_allowed", undefined, { headers: { Allow: allowed.join(", ") } });
}

/** Methods of a route, HEAD beside GET. */
const methodsOf = ({ methods }: Route): string[] =>
  METHODS.filter((name) => methods[name] !== undefined).flatMap((name) => (name === "GET" ? [name, "HEAD"] : [name]));

const pathParams = (req: Request) => Object.fromEntries(Object.entries(req.params).map(([k, v]) => [k, String(v)]));

function refuse(
  context: ProbeContext,
  route: Route,
  { req, res, requestId }: Pick<Call, "req" | "res" | "requestId">,
  error: unknown,
) {
  if (error instanceof ClientGone) return;
  const refusal = error instanceof HookError ? error : new HookError("internal");
  if (FAULTS.has(refusal.kind) || (refusal.status >= 500 && refusal.cause !== undefined)) {
    // the cause of a refusal says more than its sentence
    const err = error instanceof HookError ? (error.cause ?? error) : error;
    context.log.error({ request_id: requestId, err }, refusal.message);
  }
  // a broken stream has sent its 200 already; cut, it makes the reader resume
  if (res.headersSent) res.destroy();
  else SEND_ERROR[route.door === "page" ? "hooks" : route.door](req, res, refusal, requestId);
}

/** Counts and logs the request once its connection is done with it. */
function watch(context: ProbeContext, route: Route, requestId: string, req: Request, res: Response): void {
  const since = context.clock.monotonic();
  res.once("close", () => {
    const status = res.headersSent ? res.statusCode : "gone";
    const seconds = (context.clock.monotonic() - since) / 1000;
    context.metrics.countRequest({ route: route.name, method: req.method, status, seconds });
    const shown = { status, seconds: Number(seconds.toFixed(3)) };
    context.log.info({ request_id: requestId, route: route.name, method: req.method, ...shown }, "request");
  });
}
