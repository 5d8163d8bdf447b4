import type { Call, Route } from "../hooks/http/call.js";
import { requireRunId } from "../hooks/http/call.js";
import type { HookContext } from "../hooks/http/context.js";
import { onlyValue, pageSize, refuseUnknown } from "../hooks/http/page.js";
import { sendJson } from "../hooks/http/responses.js";
import { runItem } from "../hooks/http/routes/payloads.js";
import { readState } from "../hooks/http/routes/run-routes.js";
import type { RunSummary } from "../hooks/run.js";
import type { DescribedRuns } from "./described-runs.js";
import { pageRoute } from "./page-route.js";
import { addressOf, queryOf } from "./picture-address.js";
import type { RunFacts } from "./run-facts.js";
import type { PageBody, PageSchemas } from "./schemas.js";
import { readSearch } from "./search.js";

/** Runs as the page lists them. */
export function pageRunRoutes(context: HookContext, described: DescribedRuns, bodies: PageSchemas): Route[] {
  const itemOf = async (run: RunSummary, { title, models }: RunFacts): Promise<PageBody<"listedRun">> => {
    const picture = await described.firstPictureOf(run);
    const thumbnail = picture === undefined ? null : addressOf(run.id, picture, queryOf(context, run.id));
    return { ...runItem(run), title, models: [...models], thumbnail };
  };

  const list = async ({ req, res, query }: Call) => {
    refuseUnknown(query, ["cursor", "limit", "state", "search"]);
    const { runs, nextCursor, from, to } = await described.scan({
      cursor: onlyValue(query, "cursor"),
      limit: pageSize(onlyValue(query, "limit")),
      state: readState(onlyValue(query, "state")),
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
      summary: "Tell what a run was started with",
      responses: { 200: { json: bodies.runStart } },
      handle: one,
    }),
  ];
}
