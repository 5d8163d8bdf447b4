import { removeLocalFile } from "../hooks/files/local-files.js";
import { HookError } from "../hooks/hook-error.js";
import { type Call, type Route, requireRunId } from "../hooks/http/call.js";
import type { HookContext } from "../hooks/http/context.js";
import { onlyValue, pageSize, refuseUnknown } from "../hooks/http/page.js";
import { sendJson } from "../hooks/http/responses.js";
import type { RunStatus } from "../hooks/run.js";
import type { DescribedRuns } from "./described-runs.js";
import { ADDRESS_SECONDS, addressOf, isPicture, queryOf } from "./picture-address.js";
import type { RunFacts } from "./run-facts.js";
import { readSearch } from "./search.js";

/** Runs of one page of pictures. */
const MOST_RUNS = 50;

/**
 * Pictures of all runs, or of those with a tag or that a search finds, newest first; the query that opens one run; and
 * where `deletesIn` is a folder, `DELETE /api/page/picture`.
 */
export function pictureRoutes(context: HookContext, described: DescribedRuns, deletesIn?: string): Route[] {
  const { runs } = context;

  const pictures = async ({ req, res, query }: Call) => {
    refuseUnknown(query, ["cursor", "limit", "tag", "search", "model", "from", "to"]);
    const { runs, nextCursor } = await described.scan({
      cursor: onlyValue(query, "cursor"),
      limit: Math.min(MOST_RUNS, pageSize(onlyValue(query, "limit"))),
      tag: onlyValue(query, "tag"),
      matches: readSearch(query),
      isGone: () => res.destroyed,
    });
    const found = [];
    for (const { run, facts } of runs) {
      const status = await described.statusOf(run.id);
      if (status !== undefined) found.push(...picturesOf(status, facts, queryOf(context, run.id)));
    }
    const body = { ok: true, pictures: found, next_cursor: nextCursor, can_delete: deletesIn !== undefined };
    sendJson(req, res, { status: 200, body });
  };

  const address = async ({ req, res, ...call }: Call) => {
    const runId = requireRunId(call);
    await runs.get(runId);
    const query = queryOf(context, runId);
    sendJson(req, res, { status: 200, body: { ok: true, query, seconds: ADDRESS_SECONDS } });
  };

  const remove = async ({ req, res, ...call }: Call) => {
    const runId = requireRunId(call);
    const name = onlyValue(call.query, "name");
    if (name === undefined) throw new HookError("invalid_request", "name: expected exactly one");
    const { finishedAt } = await runs.get(runId);
    if (finishedAt === null) throw new HookError("invalid_request", "the run has not ended: cancel it first");
    const file = await runs.file(runId, name);
    if (!isPicture(file)) throw new HookError("invalid_request", "name: expected a picture");
    // in this order: after a failure in between, it can be deleted again
    await removeLocalFile(file.path, deletesIn!);
    await runs.removeFile(runId, name);
    described.forgetPictures(runId);
    sendJson(req, res, { status: 200, body: { ok: true } });
  };

  const routes: Route[] = [
    { name: "page_pictures", paths: ["/api/page/pictures"], access: "token", handlers: { GET: pictures } },
    { name: "page_address", paths: ["/api/page/address"], access: "token", handlers: { GET: address } },
  ];
  if (deletesIn === undefined) return routes;
  // decision 350
  return [
    ...routes,
    { name: "page_picture", paths: ["/api/page/picture"], access: "token", handlers: { DELETE: remove } },
  ];
}

/** Newest first, as the runs are. */
function picturesOf(run: RunStatus, { title, models }: RunFacts, query: string) {
  return run.files
    .filter(isPicture)
    .reverse()
    .map(({ name }) => ({
      run_id: run.id,
      name,
      title,
      models,
      url: addressOf(run.id, name, query),
      session_key: run.sessionKey,
      created_at: new Date(run.createdAt).toISOString(),
    }));
}
