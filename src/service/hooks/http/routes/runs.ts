import { HookError } from "../../hook-error.js";
import { type Call, type Route, runIdOf } from "../call.js";
import type { HookContext } from "../context.js";
import { sendJson } from "../problem.js";
import { sendRunFile } from "./files.js";
import { runItem, runStatus } from "./payloads.js";

const DEFAULT_PAGE = 50;
const LARGEST_PAGE = 200;

/** State, list and cancel of runs, and the files they reported. */
export function runRoutes(context: HookContext): Route[] {
  const { runs } = context;

  const status = async ({ req, res, ...call }: Call) => {
    const runId = requireRunId(call);
    const run = await runs.get(runId);
    sendJson(req, res, { status: 200, body: runStatus(req.baseUrl, run, await runs.outcome(runId)) });
  };

  const list = async ({ req, res, query }: Call) => {
    const cursor = onlyValue(query, "cursor");
    const page = await runs.list({ cursor, limit: pageSize(onlyValue(query, "limit")) });
    sendJson(req, res, {
      status: 200,
      body: { ok: true, runs: page.runs.map(runItem), next_cursor: page.nextCursor },
    });
  };

  const cancel = async ({ req, res, ...call }: Call) => {
    const runId = requireRunId(call);
    const run = await runs.cancel(runId);
    sendJson(req, res, { status: 200, body: runStatus(req.baseUrl, run, await runs.outcome(runId)) });
  };

  return [
    { name: "run_status", paths: ["/api/run_status", "/api/runs/:id"], access: "token", handlers: { GET: status } },
    { name: "runs", paths: ["/api/runs"], access: "token", handlers: { GET: list } },
    { name: "cancel", paths: ["/api/runs/:id/cancel"], access: "token", handlers: { POST: cancel } },
    {
      name: "file",
      paths: ["/api/runs/:id/files/:name"],
      access: "run",
      handlers: { GET: (call) => sendRunFile(context, call) },
    },
  ];
}

/** Fails with invalid_request where the query names no run, or several. */
export function requireRunId(call: Pick<Call, "params" | "query">): string {
  const runId = runIdOf(call);
  if (runId === undefined) throw new HookError("invalid_request", "run_id: expected exactly one");
  return runId;
}

function onlyValue(query: URLSearchParams, name: string): string | undefined {
  const values = query.getAll(name);
  if (values.length > 1) throw new HookError("invalid_request", `${name}: expected at most one`);
  return values[0] === "" ? undefined : values[0];
}

function pageSize(text: string | undefined): number {
  if (text === undefined) return DEFAULT_PAGE;
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (limit < 1) throw new HookError("invalid_request", "limit: expected an integer of 1 or more");
  return Math.min(limit, LARGEST_PAGE);
}
