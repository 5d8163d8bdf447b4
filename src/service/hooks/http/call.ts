import type { Request, Response } from "express";
import type { z } from "zod";
import { describe } from "../../../base/errors.js";
import { suggest } from "../../../base/suggest.js";
import { HookError, type HookErrorKind } from "../hook-error.js";
import type { Door } from "./responses.js";

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

/** Fields of a query or of headers, with what each means. */
export type Fields = Readonly<Record<string, z.ZodType>>;

/** A response without fault. */
export interface Answer {
  /** Absent: the words of the status. */
  readonly description?: string;
  readonly json?: z.ZodType;
  /** Media type of a body that is, or may instead be, no JSON. */
  readonly type?: string;
}

/** Paths, and how they say their refusals. */
export interface Place {
  /** Label in logs and metrics. */
  readonly name: string;
  /** API whose words refusals have, and whose page describes it; page: what no other program calls. Default: hooks. */
  readonly door?: Door | "page";
  /** The second and later ones are other names of the first one. */
  readonly paths: readonly string[];
}

/** An endpoint: the router, `openapi.json` and the tables of the pages are made of it. */
export interface Route extends Place {
  readonly method: (typeof METHODS)[number];
  /** Default: token. */
  readonly access?: Access;
  /** Name of its operation in `openapi.json`. Default: the label, which several routes may have. */
  readonly operation?: string;
  /** An imperative, without a full stop. */
  readonly summary: string;
  /** Heading of a page docs/hooks*.md that says more, as an anchor. */
  readonly section?: string;
  readonly query?: Fields;
  readonly headers?: Fields;
  /** `type`: media type, application/json where absent. */
  readonly body?: {
    readonly schema: z.ZodType;
    readonly type?: string | readonly string[];
    readonly isOptional?: true;
  };
  /** By status. */
  readonly responses: Readonly<Record<number, Answer>>;
  /** Refusals beside those that follow from the right and from the body. */
  readonly refusals?: readonly HookErrorKind[];
  readonly handle: Handler;
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

const DEFAULT_PAGE = 50;
const LARGEST_PAGE = 200;

/** Value of a parameter; undefined where it is absent or empty. Throws invalid_request where it is repeated. */
export function onlyValue(query: URLSearchParams, name: string): string | undefined {
  const values = query.getAll(name);
  if (values.length > 1) throw new HookError("invalid_request", `${name}: expected at most one`);
  return values[0] === "" ? undefined : values[0];
}

/** Value of a parameter that is one of some; undefined where it is absent or empty. Throws invalid_request. */
export function oneOf<T extends string>(query: URLSearchParams, name: string, values: readonly T[]): T | undefined {
  const text = onlyValue(query, name);
  const value = values.find((one) => one === text);
  if (value !== undefined || text === undefined) return value;
  throw new HookError("invalid_request", `${name}: expected one of ${values.join(", ")}.${suggest(text, values).hint}`);
}

/** Throws invalid_request for a parameter of another name: a misspelt filter would list what was not asked for. */
export function refuseUnknown(query: URLSearchParams, known: readonly string[]): void {
  const unknown = [...query.keys()].find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const { hint } = suggest(unknown, known);
  const sentence = `unknown parameter ${describe(unknown)}: expected ${known.join(", ")}.${hint}`;
  throw new HookError("invalid_request", sentence);
}

/** Number of entries of a page. Throws invalid_request. */
export function pageSize(text: string | undefined): number {
  if (text === undefined) return DEFAULT_PAGE;
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (limit < 1) throw new HookError("invalid_request", "limit: expected an integer of 1 or more");
  return Math.min(limit, LARGEST_PAGE);
}
