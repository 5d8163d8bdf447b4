import { type GroupItem, ofItem } from "../../runs/run-starter.js";
import { termsPayload } from "../../runs/terms.js";
import { readJsonBody } from "../body.js";
import { type Call, type Route, requireRunId } from "../call.js";
import type { HookContext } from "../context.js";
import { hashPayload, readIdempotencyKey, traceparentOf } from "../request-headers.js";
import { parseBody, type RequestSchemas, requestedSessionKey, termsFrom } from "../request-schemas.js";
import { sendJson } from "../responses.js";
import { type ReadEvents, SliceSource } from "../stream/stream-memory.js";
import { groupEnd, groupPayload } from "./payloads.js";
import { idempotencyOf, namedGraph, OF_START, refuseMessage, replayHeader, startBodyLimits } from "./start.js";
import { sendStream, streamAnswers } from "./stream-route.js";

/** Items of one turn of the event loop. */
const ITEMS_PER_TURN = 50;

type Defaults = NonNullable<ReturnType<RequestSchemas["group"]["parse"]>["defaults"]>;

/** An item, and what a repeated request must have the same. */
interface ReadItem {
  readonly item: GroupItem;
  readonly payload: readonly unknown[];
}

/** The start of a group, and its stream. */
export function groupRoutes(context: HookContext): Route[] {
  const { runs, memory, schemas, config, startRates } = context;

  const start = async (call: Call) => {
    const { req, res, tokenId } = call;
    const limits = startBodyLimits(context, config.limits.group_body_bytes);
    const body = parseBody(schemas.group, await readJsonBody(req, res, limits));
    const key = readIdempotencyKey(req, body.idempotencyKey);
    const traceparent = traceparentOf(req);
    const read: ReadItem[] = [];
    await inTurns(body.items, (value, index) => {
      read.push(ofItem(index, () => readItem(context, value, { defaults: body.defaults ?? {}, traceparent })));
    });
    const items = read.map(({ item }) => item);
    const payloadHash = hashPayload(read.map(({ payload }) => payload));
    const group = await runs.startGroup(items, {
      idempotency: idempotencyOf(key, { tokenId, endpoint: "group", payloadHash }),
      async admit() {
        await inTurns(items, ({ message, graph }, index) =>
          ofItem(index, () => refuseMessage(context, message, graph)),
        );
        startRates.count(tokenId, [...new Set(items.flatMap(({ sessionKey }) => sessionKey ?? []))]);
      },
    });
    sendJson(req, res, { status: 202, body: groupPayload(context, req.baseUrl, group), headers: replayHeader(group) });
  };

  const readEvents: ReadEvents = async (groupId, after, base) => {
    const { ends, size, ended, oldest } = await runs.readGroup(groupId, after);
    const events = ends.map((end) => {
      return { id: end.position, event: "item", data: JSON.stringify(groupEnd(context, base, end)) };
    });
    const isComplete = ended === size && (ends.at(-1)?.position ?? size) === size;
    if (isComplete) events.push({ id: size + 1, event: "done", data: JSON.stringify({ size }) });
    return { events, firstId: Math.max(after + 1, oldest), end: isComplete };
  };
  const slices = new SliceSource(readEvents, memory);
  const stream = (call: Call) => {
    const id = requireRunId(call);
    const ids = async () => {
      const { size, ended, oldest } = await runs.readGroup(id, Number.MAX_SAFE_INTEGER);
      const end = ended === size;
      return { oldestEventId: oldest, lastEventId: end ? size + 1 : ended, end };
    };
    return sendStream(context, call, { id, slices, ids, listen: () => runs.listenToGroup(id) });
  };

  const { key, resume, after, signed } = context.parameters;
  return [
    {
      name: "group",
      paths: ["/hooks/group", "/api/hooks/group"],
      method: "POST",
      summary: "Start up to 1,000 runs with one stream, all or none",
      section: "many-runs-in-one-request",
      headers: key,
      body: { schema: schemas.describedGroup },
      responses: { 202: { description: "The runs are accepted.", json: schemas.groupPayload } },
      refusals: OF_START,
      handle: start,
    },
    {
      name: "stream",
      operation: "group_stream",
      paths: ["/api/groups/:id/stream"],
      access: "run",
      method: "GET",
      summary: "Stream the ends of a group's runs, as Server-Sent Events",
      section: "many-runs-in-one-request",
      query: { ...after, ...signed },
      headers: resume,
      responses: streamAnswers("First replay_meta, then an item event for each run that ends; the last is done."),
      refusals: ["group_not_found", "rate_limited"],
      handle: stream,
    },
  ];
}

function readItem(
  context: HookContext,
  value: unknown,
  { defaults, traceparent }: { defaults: Defaults; traceparent: string | undefined },
): ReadItem {
  const own = parseBody(context.schemas.groupItem, value);
  const namesSession = own.sessionKey != null || own.session_key != null;
  const sessionKey = requestedSessionKey(context.config.sessions, namesSession ? own : defaults);
  const name = (own.name ?? defaults.name)?.trim() || undefined;
  const graphName = own.graph ?? defaults.graph;
  const terms = { ...termsFrom(defaults), ...termsFrom(own) };
  const { message } = own;
  const graph = namedGraph(context, graphName);
  return {
    item: { origin: "agent", message, name, sessionKey, graph, traceparent, ...terms },
    payload: [message, name, sessionKey, graphName, termsPayload(terms)],
  };
}

/** Does work for each item, and lets the event loop turn in between. */
async function inTurns<T>(items: readonly T[], work: (item: T, index: number) => void): Promise<void> {
  for (const [index, item] of items.entries()) {
    if (index % ITEMS_PER_TURN === ITEMS_PER_TURN - 1) await new Promise((resolve) => setImmediate(resolve));
    work(item, index);
  }
}
