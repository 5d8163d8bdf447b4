import type { NextFunction, Request, Response } from "express";
import { loadExpress } from "../../../packages.js";
import { HookError } from "../hook-error.js";
import type { HookRouter } from "../types.js";
import { passGate } from "./access/gate.js";
import { ClientGone } from "./body.js";
import type { Call, Route } from "./call.js";
import { enterConnection } from "./connection.js";
import type { HookContext } from "./context.js";
import { prepareAnswer } from "./linger.js";
import { sendError } from "./problem.js";

/** Requests for a path of ours whose parameter does not decode. */
const UNKNOWN: Route = { name: "unknown", paths: [], access: "open", handlers: {} };

/**
 * The routes as an Express router: exact paths, every answer of theirs JSON whatever the settings of the application
 * it is mounted in. All other paths are left to the application, those too that only look like one of ours.
 */
export function createRouter(context: HookContext, routes: readonly Route[]): HookRouter {
  const router = loadExpress().Router({ strict: true, caseSensitive: true });
  for (const route of routes) {
    router.all([...route.paths], (req, res) => answer(context, route, req, res));
  }
  // only a path parameter that does not decode comes here
  router.use((_error: unknown, req: Request, res: Response, _next: NextFunction) => answer(context, UNKNOWN, req, res));
  // the application hands it requests and responses of Express
  return router as unknown as HookRouter;
}

async function answer(context: HookContext, route: Route, req: Request, res: Response): Promise<void> {
  const { clock, config } = context;
  if (!(await enterConnection(req, res, { clock, seconds: config.limits.slow_reader_seconds }))) return;
  const requestId = context.newId();
  res.setHeader("X-Request-Id", requestId);
  watch(context, route, requestId, req, res);
  await prepareAnswer(req, res, clock);
  try {
    const handler = handlerOf(route, req.method);
    const query = new URLSearchParams(/\?(.*)$/s.exec(req.url)?.[1] ?? "");
    const call = { req, res, requestId, query, params: pathParams(req) };
    await handler({ ...call, tokenId: passGate(context, route.access, call) });
  } catch (error) {
    refuse(context, { req, res, requestId }, error);
  }
}

function handlerOf(route: Route, method: string) {
  if (route === UNKNOWN) throw new HookError("not_found");
  const { GET, POST } = route.handlers;
  const handler = method === "POST" ? POST : method === "GET" || method === "HEAD" ? GET : undefined;
  if (handler !== undefined) return handler;
  const allowed = [...(GET === undefined ? [] : ["GET", "HEAD"]), ...(POST === undefined ? [] : ["POST"])];
  throw new HookError("method_not_allowed", undefined, { headers: { Allow: allowed.join(", ") } });
}

const pathParams = (req: Request) => Object.fromEntries(Object.entries(req.params).map(([k, v]) => [k, String(v)]));

function refuse(
  context: HookContext,
  { req, res, requestId }: Pick<Call, "req" | "res" | "requestId">,
  error: unknown,
) {
  if (error instanceof ClientGone) return;
  const refusal = error instanceof HookError ? error : new HookError("internal");
  if (refusal.kind === "internal" || refusal.kind === "store_unavailable") {
    // of a refusal the cause tells more
    const err = error instanceof HookError ? (error.cause ?? error) : error;
    context.log.error({ request_id: requestId, err }, refusal.message);
  }
  // a stream that breaks cannot take its 200 back; cut, it makes the reader resume
  if (res.headersSent) res.destroy();
  else sendError(req, res, refusal, requestId);
}

/** Counts and logs the request once its connection is done with it. */
function watch(context: HookContext, route: Route, requestId: string, req: Request, res: Response): void {
  const since = context.clock.monotonic();
  res.once("close", () => {
    const status = res.headersSent ? res.statusCode : "gone";
    const seconds = (context.clock.monotonic() - since) / 1000;
    context.metrics.answered({ route: route.name, method: req.method, status, seconds });
    context.log.info({ request_id: requestId, route: route.name, method: req.method, status, seconds }, "request");
  });
}
