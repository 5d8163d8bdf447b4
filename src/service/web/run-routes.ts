import { removeLocalFile } from "../hooks/files/file-store.js";
import { HookError } from "../hooks/hook-error.js";
import { type Call, oneOf, onlyValue, pageSize, type Route, refuseUnknown, requireRunId } from "../hooks/http/call.js";
import type { HookContext } from "../hooks/http/context.js";
import { sendJson } from "../hooks/http/responses.js";
import { runItem } from "../hooks/http/routes/payloads.js";
import { RUN_STATES, type RunStatus, type RunSummary } from "../hooks/run.js";
import {
  ADDRESS_SECONDS,
  type DescribedRuns,
  fileAddress,
  isPicture,
  readSearch,
  signedQueryOf,
} from "./described-runs.js";
import { type PageBody, type PageSchemas, pageRoute } from "./page-route.js";
import type { RunFacts } from "./run-facts.js";

/** Runs as the page lists them. */
export function pageRunRoutes(context: HookContext, described: DescribedRuns, bodies: PageSchemas): Route[] {
  const itemOf = async (run: RunSummary, { title, models }: RunFacts): Promise<PageBody<"listedRun">> => {
    const picture = await described.firstPictureOf(run);
    const thumbnail = picture === undefined ? null : fileAddress(run.id, picture, signedQueryOf(context, run.id));
    return { ...runItem(run), title, models: [...models], thumbnail };
  };

  const list = async ({ req, res, query }: Call) => {
    refuseUnknown(query, ["cursor", "limit", "state", "search"]);
    const { runs, nextCursor, from, to } = await described.scan({
      cursor: onlyValue(query, "cursor"),
      limit: pageSize(onlyValue(query, "limit")),
      state: oneOf(query, "state", RUN_STATES),
      matches: readSearch(query),
      isGone: () => res.destroyed,
    });
    const items = [];
    for (const { run, facts } of runs) items.push(await itemOf(run, facts));
    const body: PageBody<"runPage"> = { ok: true, runs: items, next_cursor: nextCursor, from, to };
    sendJson(req, res, { status: 200, body });
  };

  const one = async ({ req, res, ...call }: Call) => {
    const runId = requireRunId(call);
    await context.runs.get(runId);
    const { title, values, models } = await described.factsOf(runId);
    sendJson(req, res, { status: 200, body: { ok: true, title, values, models } });
  };

  return [
    pageRoute("runs", "GET", {
      summary: "List runs with their titles and first pictures: all, or those that a search finds",
      responses: { 200: { json: bodies.runPage } },
      handle: list,
    }),
    pageRoute("run", "GET", {
      summary: "Get the values a run was started with",
      responses: { 200: { json: bodies.runStart } },
      handle: one,
    }),
  ];
}

/** Runs of one page of pictures. */
const MOST_RUNS_OF_PAGE = 50;

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
      limit: Math.min(MOST_RUNS_OF_PAGE, pageSize(onlyValue(query, "limit"))),
      tag: onlyValue(query, "tag"),
      matches: readSearch(query),
      isGone: () => res.destroyed,
    });
    const found = [];
    for (const { run, facts } of runs) {
      const status = await described.statusOf(run.id);
      if (status !== undefined) found.push(...picturesOf(status, facts, signedQueryOf(context, run.id)));
    }
    const can_delete = deletesIn !== undefined;
    const body: PageBody<"picturePage"> = { ok: true, pictures: found, next_cursor: nextCursor, can_delete };
    sendJson(req, res, { status: 200, body });
  };

  const address = async ({ req, res, ...call }: Call) => {
    const runId = requireRunId(call);
    await runs.get(runId);
    const query = signedQueryOf(context, runId);
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
  // Off by default, and only below output_dir; the bytes go before the row, so a failure can be repeated.
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
      url: fileAddress(run.id, name, query),
      session_key: run.sessionKey,
      created_at: new Date(run.createdAt).toISOString(),
    }));
}
