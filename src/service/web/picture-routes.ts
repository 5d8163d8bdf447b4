import { extname } from "node:path";
import { fileUrl } from "../hooks/file-url.js";
import { HookError } from "../hooks/hook-error.js";
import { type Call, type Route, requireRunId } from "../hooks/http/call.js";
import type { HookContext } from "../hooks/http/context.js";
import { onlyValue, pageSize } from "../hooks/http/page.js";
import { sendJson } from "../hooks/http/responses.js";
import { signedQuery } from "../hooks/http/routes/payloads.js";
import type { RunStatus } from "../hooks/run.js";

/** Time for which an address that the page asks for opens a run. */
const ADDRESS_SECONDS = 3600;
/** Runs of one page of pictures. */
const MOST_RUNS = 50;
/** Extensions of pictures that browsers show. */
const SHOWN: ReadonlySet<string> = new Set([".png", ".jpg", ".jpeg", ".webp", ".gif", ".avif"]);

// decision 284
/** Pictures of all runs, or of those with a tag, newest first, and the signed query with which a browser loads a run's stream and files. */
export function pictureRoutes(context: HookContext): Route[] {
  const { runs } = context;
  const queryOf = (runId: string) => {
    const until = runs.now() / 1000 + ADDRESS_SECONDS;
    return new URLSearchParams(signedQuery(context, runId, until)).toString();
  };

  const pictures = async ({ req, res, query }: Call) => {
    const limit = Math.min(MOST_RUNS, pageSize(onlyValue(query, "limit")));
    const page = await runs.list({ cursor: onlyValue(query, "cursor"), limit, tag: onlyValue(query, "tag") });
    const found = [];
    for (const { id } of page.runs) {
      const run = await statusOf(context, id);
      if (run !== undefined) found.push(...picturesOf(run, queryOf(id)));
    }
    sendJson(req, res, { status: 200, body: { ok: true, pictures: found, next_cursor: page.nextCursor } });
  };

  const address = async ({ req, res, ...call }: Call) => {
    const runId = requireRunId(call);
    await runs.get(runId);
    sendJson(req, res, { status: 200, body: { ok: true, query: queryOf(runId), seconds: ADDRESS_SECONDS } });
  };

  return [
    { name: "page_pictures", paths: ["/api/page/pictures"], access: "token", handlers: { GET: pictures } },
    { name: "page_address", paths: ["/api/page/address"], access: "token", handlers: { GET: address } },
  ];
}

/** State of a run; undefined where it was removed since it was listed. */
async function statusOf({ runs }: HookContext, id: string): Promise<RunStatus | undefined> {
  try {
    return await runs.status(id);
  } catch (error) {
    if (error instanceof HookError && error.kind === "run_not_found") return undefined;
    throw error;
  }
}

/** Newest first, as the runs are. The addresses are relative to the page. */
function picturesOf(run: RunStatus, query: string) {
  const pictures = run.files.filter(({ name }) => SHOWN.has(extname(name).toLowerCase()));
  return pictures.reverse().map(({ name }) => ({
    run_id: run.id,
    name,
    url: fileUrl(run.id, name).slice(1) + (query === "" ? "" : `?${query}`),
    session_key: run.sessionKey,
    created_at: new Date(run.createdAt).toISOString(),
  }));
}
