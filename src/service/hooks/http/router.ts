import type { NextFunction, Request, Response, Router } from "express";
import { loadExpress } from "../../../base/lazy.js";
import { HookError, type HookErrorKind } from "../hook-error.js";
import { allowCrossOrigin } from "./access/cross-origin.js";
import { ClientGone } from "./body.js";
import { type Call, METHODS, type Place, type Route } from "./call.js";
import { enterConnection, prepareResponse } from "./connection.js";
import type { ProbeContext } from "./context.js";
import { passGate } from "./gate.js";
import { SEND_ERROR } from "./responses.js";

/** Routes of the same paths, by method. */
interface Crossing {
  readonly place: Place;
  /** HEAD beside GET; without any, the path does not exist. */
  readonly allowed: readonly string[];
  readonly routes: ReadonlyMap<string, Route>;
}

/** Place of requests with a path parameter that cannot be decoded. */
const UNKNOWN = crossing({ name: "unknown", paths: [] }, []);

/** Refusals whose causes are logged. */
const FAULTS: ReadonlySet<HookErrorKind> = new Set(["internal", "store_unavailable", "files_unavailable"]);

// The public type is its shape, (req, res, next), so no @types/express is needed.
// decisions: The router takes exact paths and comes before body parsers; The router takes exact paths and comes before body parsers
/**
 * Creates an Express router of the routes: exact paths, and JSON responses whatever the application's settings. All other
 * paths are left to the application, even those that only differ by case or a slash. `unknown`: paths that are
 * answered with 404 in the format of their API.
 */
export function createRouter(context: ProbeContext, routes: readonly Route[], unknown: readonly Place[] = []): Router {
  const router = loadExpress().Router({ strict: true, caseSensitive: true });
  const byPaths = new Map<string, Route[]>();
  for (const route of routes) {
    const key = route.paths.join(" ");
    byPaths.set(key, [...(byPaths.get(key) ?? []), route]);
  }
  const crossings = [...byPaths.values()].map((routes) => crossing(routes[0]!, routes));
  const others = unknown.map((place) => crossing(place, []));
  for (const at of [...crossings, ...others]) {
    router.all([...at.place.paths], (req, res) => handle(context, at, req, res));
  }
  // only for a path parameter that cannot be decoded
  router.use((_error: unknown, req: Request, res: Response, _next: NextFunction) => {
    const at = others.find(({ place }) => req.path.startsWith(`${place.paths[0]}/`)) ?? UNKNOWN;
    void handle(context, at, req, res);
  });
  return router;
}

function crossing(place: Place, routes: readonly Route[]): Crossing {
  const byMethod = new Map(routes.map((route) => [route.method as string, route]));
  const get = byMethod.get("GET");
  const allowed = METHODS.filter((method) => byMethod.has(method)).flatMap((method) =>
    method === "GET" ? [method, "HEAD"] : [method],
  );
  return { place, allowed, routes: get === undefined ? byMethod : byMethod.set("HEAD", get) };
}

async function handle(context: ProbeContext, at: Crossing, req: Request, res: Response): Promise<void> {
  const { clock, config } = context;
  if (!(await enterConnection(req, res, { clock, seconds: config.limits.slow_reader_seconds }))) return;
  const requestId = context.newId();
  res.setHeader("X-Request-Id", requestId);
  watch(context, at.place, requestId, req, res);
  await prepareResponse(req, res, clock);
  if (allowCrossOrigin(config.web, req, res, at.allowed)) return;
  try {
    const route = routeOf(at, req.method);
    const query = new URLSearchParams(/\?(.*)$/s.exec(req.url)?.[1] ?? "");
    const call = { req, res, requestId, query, params: pathParams(req) };
    await route.handle({ ...call, tokenId: passGate(context, route.access ?? "token", call) });
  } catch (error) {
    refuse(context, at.place, { req, res, requestId }, error);
  }
}

function routeOf({ allowed, routes }: Crossing, method: string): Route {
  if (allowed.length === 0) throw new HookError("not_found");
  const route = routes.get(method);
  if (route !== undefined) return route;
  throw new HookError("method_not_allowed", undefined, { headers: { Allow: allowed.join(", ") } });
}

const pathParams = (req: Request) => Object.fromEntries(Object.entries(req.params).map(([k, v]) => [k, String(v)]));

function refuse(
  context: ProbeContext,
  { door = "hooks" }: Place,
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
  else SEND_ERROR[door === "page" ? "hooks" : door](req, res, refusal, requestId);
}

/** Counts and logs the request once its connection is done with it. */
function watch(context: ProbeContext, { name: route }: Place, requestId: string, req: Request, res: Response): void {
  const since = context.clock.monotonic();
  res.once("close", () => {
    const status = res.headersSent ? res.statusCode : "gone";
    const seconds = (context.clock.monotonic() - since) / 1000;
    context.metrics.countRequest({ route, method: req.method, status, seconds });
    const shown = { status, seconds: Number(seconds.toFixed(3)) };
    context.log.info({ request_id: requestId, route, method: req.method, ...shown }, "request");
  });
}
