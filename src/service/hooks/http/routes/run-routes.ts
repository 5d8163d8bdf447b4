import { suggest } from "../../../../base/errors.js";
import { normalizeSessionKey, sessionKeyFault } from "../../../../render/config/session-key.js";
import { isTag, TAG_FAULT } from "../../../../render/config/terms.js";
import { HookError } from "../../hook-error.js";
import { RUN_STATES, type RunState } from "../../run.js";
import { type Call, type Route, requireRunId } from "../call.js";
import type { HookContext } from "../context.js";
import { onlyValue, pageSize, refuseUnknown } from "../page.js";
import { sendJson } from "../responses.js";
import { runItem, runStatus } from "./payloads.js";
import { sendRunFile } from "./run-file.js";

/** Routes for the state, list, cancellation and files of runs. */
export function runRoutes(context: HookContext): Route[] {
  const { runs } = context;

  const status = async ({ req, res, ...call }: Call) => {
    sendJson(req, res, { status: 200, body: runStatus(req.baseUrl, await runs.status(requireRunId(call))) });
  };

  const list = async ({ req, res, query }: Call) => {
    refuseUnknown(query, ["cursor", "limit", "state", "session_key", "tag"]);
    const cursor = onlyValue(query, "cursor");
    const limit = pageSize(onlyValue(query, "limit"));
    const state = readState(onlyValue(query, "state"));
    const sessionKey = readSessionKey(onlyValue(query, "session_key"));
    const tag = readTag(onlyValue(query, "tag"));
    const page = await runs.list({ cursor, limit, state, sessionKey, tag });
    sendJson(req, res, {
      status: 200,
      body: { ok: true, runs: page.runs.map(runItem), next_cursor: page.nextCursor },
    });
  };

  const cancel = async ({ req, res, ...call }: Call) => {
    const runId = requireRunId(call);
    await runs.cancel(runId);
    sendJson(req, res, { status: 200, body: runStatus(req.baseUrl, await runs.status(runId)) });
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

/** Value of the parameter `state`. Throws invalid_request. */
export function readState(text: string | undefined): RunState | undefined {
  const state = RUN_STATES.find((name) => name === text);
  if (state !== undefined || text === undefined) return state;
  const { hint } = suggest(text, RUN_STATES);
  throw new HookError("invalid_request", `state: expected one of ${RUN_STATES.join(", ")}.${hint}`);
}

function readTag(text: string | undefined): string | undefined {
  if (text === undefined || isTag(text)) return text;
  throw new HookError("invalid_request", `tag: ${TAG_FAULT}`);
}

function readSessionKey(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const key = normalizeSessionKey(text);
  if (key === "") return undefined;
  const fault = sessionKeyFault(key);
  if (fault !== undefined) throw new HookError("invalid_request", `session_key: ${fault}`);
  return key;
}
