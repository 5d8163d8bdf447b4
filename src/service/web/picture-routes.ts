import { removeLocalFile } from "../hooks/files/local-files.js";
import { HookError } from "../hooks/hook-error.js";
import { type Call, type Route, requireRunId } from "../hooks/http/call.js";
import type { HookContext } from "../hooks/http/context.js";
import { onlyValue, pageSize, refuseUnknown } from "../hooks/http/page.js";
import { sendJson } from "../hooks/http/responses.js";
import type { RunStatus } from "../hooks/run.js";
import type { DescribedRuns } from "./described-runs.js";
import { pageRoute } from "./page-route.js";
import { ADDRESS_SECONDS, addressOf, isPicture, queryOf } from "./picture-address.js";
import type { RunFacts } from "./run-facts.js";
import type { PageBody, PageSchemas } from "./schemas.js";
import { readSearch } from "./search.js";

/** Runs of one page of pictures. */
const MOST_RUNS = 50;

/** Pictures of runs. `deletesIn`: folder whose pictures may be deleted. */
export function pictureRoutes(
  context: HookContext,
  described: DescribedRuns,
  bodies: PageSchemas,
  deletesIn?: string,
): Route[] {
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
    const can_delete = deletesIn !== undefined;
    const body: PageBody<"picturePage"> = { ok: true, pictures: found, next_cursor: nextCursor, can_delete };
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

  const routes = [
    pageRoute("pictures", "GET", {
      summary: "List the pictures of all runs, newest first, or those that a search finds",
      responses: { 200: { json: bodies.picturePage } },
      handle: pictures,
    }),
    pageRoute("address", "GET", {
      summary: "Sign the addresses of a run",
      responses: { 200: { json: bodies.address } },
      handle: address,
    }),
  ];
  if (deletesIn === undefined) return routes;
  // decision 350
  const summary = "Delete a picture with its file";
  return [
    ...routes,
    pageRoute("picture", "DELETE", { summary, responses: { 200: { json: bodies.any } }, handle: remove }),
  ];
}

/** Newest first, as the runs are. */
function picturesOf(run: RunStatus, { title, models }: RunFacts, query: string): PageBody<"picture">[] {
  return run.files
    .filter(isPicture)
    .reverse()
    .map(({ name }) => ({
      run_id: run.id,
      name,
      title,
      models: [...models],
      url: addressOf(run.id, name, query),
      session_key: run.sessionKey,
      created_at: new Date(run.createdAt).toISOString(),
    }));
}
