import type { Request, Response } from "express";
import { HookError } from "../hook-error.js";

/** One request on its way through the gate to a handler. */
export interface Call {
  readonly req: Request;
  readonly res: Response;
  /** Sent in the response's header and the error body, and logged. */
  readonly requestId: string;
  /** Parsed here, not by the application, whose settings may turn repeated names into objects. */
  readonly query: URLSearchParams;
  readonly params: Readonly<Record<string, string>>;
  /** Id of the request's token; "" where it needs none or is signed. */
  readonly tokenId: string;
}

export type Handler = (call: Call) => Promise<void> | void;

/** Methods that routes handle; a handler of GET handles HEAD too. */
export const METHODS = ["GET", "POST", "DELETE"] as const;

/**
 * open: for all. token: with the hook token. run: with the token or the run's signed URL, as `stream_auth` says. sender: with
 * the signature of a configured sender, which the handler checks. asset: with the token or the asset's signed URL.
 */
export type Access = "open" | "token" | "run" | "sender" | "asset";

export interface Route {
  /** Label in logs and metrics. */
  readonly name: string;
  readonly paths: readonly string[];
  readonly access: Access;
  /** Without any, the path does not exist. */
  readonly handlers: { readonly [Method in (typeof METHODS)[number]]?: Handler };
  /** Writes the route's refusals; absent: as hooks do. */
  readonly sendError?: (req: Request, res: Response, error: HookError, requestId: string) => void;
}

/** Id of the request's run, from the path or the query; undefined where it is missing or repeated. */
export function runIdOf({ params, query }: Pick<Call, "params" | "query">): string | undefined {
  if (params.id !== undefined) return params.id;
  const ids = query.getAll("run_id");
  return ids.length === 1 && ids[0] !== "" ? ids[0] : undefined;
}

/** Id of the request's run, from the path or the query. Throws invalid_request where it is missing or repeated. */
export function requireRunId(call: Pick<Call, "params" | "query">): string {
  const runId = runIdOf(call);
  if (runId === undefined) throw new HookError("invalid_request", "run_id: expected exactly one");
  return runId;
}
