import { loadZod } from "../../../../base/lazy.js";
import { isTag, normalizeSessionKey, sessionKeyFault, TAG_FAULT } from "../../../../render/config/run-terms.js";
import { HookError } from "../../hook-error.js";
import { RUN_STATES } from "../../run.js";
import {
  type Call,
  type Handler,
  oneOf,
  onlyValue,
  pageSize,
  type Route,
  refuseUnknown,
  requireRunId,
} from "../call.js";
import type { HookContext } from "../context.js";
import type { Body } from "../response-schemas.js";
import { sendJson } from "../responses.js";
import { runItem, runStatus } from "./payloads.js";
import { sendRunFile } from "./send-file.js";

/** Routes for the state, list, cancellation and files of runs. */
export function runRoutes(context: HookContext): Route[] {
  const { runs, schemas, parameters } = context;
  const { z } = loadZod();
  const filters = {
    ...parameters.page,
    state: z.enum(RUN_STATES).optional().meta({ description: "Only runs in this state." }),
    session_key: z.string().optional().meta({ description: "Only runs of this session." }),
    tag: z.string().optional().meta({ description: "Only runs with this tag." }),
  };

  const status = async ({ req, res, ...call }: Call) => {
    sendJson(req, res, { status: 200, body: runStatus(req.baseUrl, await runs.status(requireRunId(call))) });
  };

  const list = async ({ req, res, query }: Call) => {
    refuseUnknown(query, Object.keys(filters));
    const cursor = onlyValue(query, "cursor");
    const limit = pageSize(onlyValue(query, "limit"));
    const state = oneOf(query, "state", RUN_STATES);
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

  const ofOne = {
    responses: { 200: { json: schemas.runStatus } },
    refusals: ["run_not_found"],
  } as const;
  const summary = "Show a run: its state, position in the queue, progress, files, response";
  return [
    {
      name: "run_status",
      operation: "run",
      paths: ["/api/runs/:id"],
      method: "GET",
      summary,
      ...ofOne,
      handle: status,
    },
    {
      name: "run_status",
      paths: ["/api/run_status"],
      method: "GET",
      summary,
      query: parameters.runId,
      ...ofOne,
      handle: status,
    },
    {
      name: "runs",
      paths: ["/api/runs"],
      method: "GET",
      summary: "List the runs, newest first: all, or those of a state, a session or a tag",
      query: filters,
      responses: { 200: { json: schemas.runList } },
      handle: list,
    },
    {
      name: "cancel",
      paths: ["/api/runs/:id/cancel"],
      method: "POST",
      summary: "Cancel a run; an ended one stays as it is",
      ...ofOne,
      handle: cancel,
    },
    {
      name: "file",
      paths: ["/api/runs/:id/files/:name"],
      access: "run",
      method: "GET",
      summary: "Send a file that the run reported",
      query: parameters.signed,
      responses: { 200: { description: "The file.", type: "application/octet-stream" } },
      refusals: ["run_not_found", "not_found", "files_unavailable"],
      handle: (call) => sendRunFile(context, call),
    },
  ];
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

/** The queue as a whole. */
export function queueRoutes({ runs, schemas }: HookContext): Route[] {
  const state: Handler = async ({ req, res }) => {
    const paused = await runs.isPaused();
    const { queued, running } = runs.stats();
    const body: Body<"queue"> = { ok: true, paused, queued, running };
    sendJson(req, res, { status: 200, body });
  };
  const change =
    (isPaused: boolean): Handler =>
    async (call) => {
      await runs.setPaused(isPaused);
      await state(call);
    };
  const answers = {
    section: "pausing",
    responses: { 200: { json: schemas.queue } },
  } as const;
  return [
    {
      name: "queue",
      paths: ["/api/queue"],
      method: "GET",
      summary: "Count queued and running runs, and tell whether runs start",
      ...answers,
      handle: state,
    },
    {
      name: "pause",
      paths: ["/api/queue/pause"],
      method: "POST",
      summary: "Pause the queue; running runs finish, the pause survives a restart",
      ...answers,
      handle: change(true),
    },
    {
      name: "resume",
      paths: ["/api/queue/resume"],
      method: "POST",
      summary: "Let runs start again",
      ...answers,
      handle: change(false),
    },
  ];
}
