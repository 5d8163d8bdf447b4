import type { Request, Response } from "express";
import { HookError } from "../hook-error.js";

/** One request on its way through the gate to a handler. */
export interface Call {
  readonly req: Request;
  readonly res: Response;
  /** In the answer's header, the error body and the log. */
  readonly requestId: string;
  /** Parsed here, not by the host application, whose settings may turn repeated names into objects. */
  readonly query: URLSearchParams;
  readonly params: Readonly<Record<string, string>>;
  /** Of the configured token that the request carries; "" where the route or a signature let it in without. */
  readonly tokenId: string;
}

export type Handler = (call: Call) => Promise<void> | void;

/** open: anybody. token: the hook token. run: the token or the run's signed URL, as `stream_auth` says. */
export type Access = "open" | "token" | "run";

export interface Route {
  /** Label in logs and metrics. */
  readonly name: string;
  readonly paths: readonly string[];
  readonly access: Access;
  /** GET answers HEAD too. */
  readonly handlers: { readonly GET?: Handler; readonly POST?: Handler };
}

/** The id of the run a request is about, from the path or the query; undefined where it is missing or repeated. */
export function runIdOf({ params, query }: Pick<Call, "params" | "query">): string | undefined {
  if (params.id !== undefined) return params.id;
  const ids = query.getAll("run_id");
  return ids.length === 1 && ids[0] !== "" ? ids[0] : undefined;
}

/** The same; throws invalid_request where it is missing or repeated. */
export function requireRunId(call: Pick<Call, "params" | "query">): string {
  const runId = runIdOf(call);
  if (runId === undefined) throw new HookError("invalid_request", "run_id: expected exactly one");
  return runId;
}
