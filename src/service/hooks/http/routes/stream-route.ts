import { HookError } from "../../hook-error.js";
import { type EventSlice, mountFileUrls } from "../../run.js";
import type { Listener } from "../../runs/event-bus.js";
import { type Call, type Route, requireRunId } from "../call.js";
import type { HookContext } from "../context.js";
import { type ReadEvents, readCursor, replayMetaFrame, SliceSource } from "../stream/stream-memory.js";
import { StreamWriter } from "../stream/stream-writer.js";

/** Headers of every stream of events. */
export const STREAM_HEADERS = {
  "Content-Type": "text/event-stream; charset=utf-8",
  "Cache-Control": "no-store, no-transform",
  "X-Accel-Buffering": "no",
  "X-Content-Type-Options": "nosniff",
};

/** Most bytes for one reader before it waits for its next turn. */
const BYTES_PER_TURN = 128 * 1024;

/** The events of one run, after any id, live until its terminal event. */
export function streamRoute(context: HookContext): Route {
  const { runs, memory, parameters } = context;
  const readEvents: ReadEvents = async (runId, after, base) => {
    const { events, end } = await runs.read(runId, after);
    const mounted = events.map((event) => ({ ...event, data: mountFileUrls(event.data, base, runId) }));
    return { events: mounted, firstId: events[0]?.id ?? after + 1, end };
  };
  const slices = new SliceSource(readEvents, memory);
  const handle = (call: Call) => {
    const id = requireRunId(call);
    // after the largest id: ids without events
    const ids = () => runs.read(id, Number.MAX_SAFE_INTEGER);
    return sendStream(context, call, { id, slices, ids, listen: () => runs.listen(id) });
  };
  return {
    name: "stream",
    paths: ["/api/stream"],
    access: "run",
    method: "GET",
    summary: "Stream the events of a run, from any id, as Server-Sent Events",
    section: "the-stream",
    query: { ...parameters.runId, ...parameters.after, ...parameters.signed },
    headers: parameters.resume,
    responses: streamAnswers("First replay_meta, then events with ids from 1; the last is done, error or aborted."),
    refusals: ["run_not_found", "rate_limited"],
    handle,
  };
}

/** Responses of a stream. */
export const streamAnswers = (description: string): Route["responses"] => ({
  200: { description, type: "text/event-stream" },
  204: { description: "It has ended, and the reader has all its events." },
});

/** The events of a run or a group. */
export interface EventSource {
  readonly id: string;
  readonly slices: SliceSource;
  /** Returns the ids of the stored events. Fails where the run or group is unknown. */
  ids(): Promise<Pick<EventSlice, "oldestEventId" | "lastEventId" | "end">>;
  readonly listen: () => Listener;
}

/** Streams events after the id that the request names, live until the last one. */
export async function sendStream(context: HookContext, { req, res, query }: Call, source: EventSource): Promise<void> {
  const request = readCursor(req.headers["last-event-id"]?.toString(), query.getAll("last_event_id"));
  if (request === undefined) throw new HookError("invalid_request", "last_event_id: expected one integer");
  const { oldestEventId, lastEventId, end } = await source.ids();
  const cursor = Math.min(Math.max(0, request.after), lastEventId);
  const isComplete = end && cursor === lastEventId;
  // without a 204 an EventSource would reconnect for ever after the end
  if (request.isResume && isComplete) return void res.writeHead(204, STREAM_HEADERS).end();
  if (req.method === "HEAD") return void res.writeHead(200, STREAM_HEADERS).end();
  if (res.destroyed) return;

  const { writer, listener } = openStream(context, res, source);
  writer.write(
    replayMetaFrame({
      replay_truncated: cursor + 1 < oldestEventId,
      oldest_event_id: oldestEventId,
      requested_last_event_id: request.after,
    }),
  );
  if (!isComplete) await follow(context, writer, listener, source, req.baseUrl, Math.max(cursor, oldestEventId - 1));
  writer.end();
}

/** Opens a stream and takes its slot; both end with the connection. Fails with rate_limited. */
export function openStream(
  { slots, memory, clock, config }: HookContext,
  res: Call["res"],
  { id, listen }: Pick<EventSource, "id" | "listen">,
): { readonly writer: StreamWriter; readonly listener: Listener } {
  const release = slots.take(id, () => res.destroy());
  const listener = listen();
  res.once("close", () => {
    release();
    listener.close();
    if (slots.size === 0) memory.clear();
  });
  res.writeHead(200, STREAM_HEADERS);
  return { writer: new StreamWriter(res, clock, memory, config.limits.slow_reader_bytes), listener };
}

/** Sends stored and new events until the terminal one, the reader's leave or the service's stop. */
async function follow(
  { turns }: HookContext,
  writer: StreamWriter,
  listener: Listener,
  { id: sourceId, slices }: EventSource,
  base: string,
  after: number,
): Promise<void> {
  /** Drops the slice when it returns: a reader that waits holds nothing. */
  const sendAfter = async (id: number) => {
    const slice = await slices.after(sourceId, id, base);
    // trimmed behind a slow reader: ended here, it resumes and replay_meta reports the gap
    const isGone = slice === undefined || slice.firstId > id + 1 || !writer.isOpen;
    if (isGone) return { bytes: 0, id, isEnd: slice !== undefined };
    writer.writeSlice(slice);
    return { bytes: slice.bytes.length, id: slice.lastId, isEnd: slice.isEnd };
  };
  await turns.next();
  for (let cursor = after, sinceTurn = 0; writer.isOpen && !listener.isClosed; ) {
    const sent = await sendAfter(cursor);
    if (sent.isEnd) return;
    if (sent.id === cursor) {
      await listener.changed();
      sinceTurn = 0;
      continue;
    }
    cursor = sent.id;
    sinceTurn += sent.bytes;
    await writer.ready();
    if (sinceTurn < BYTES_PER_TURN) continue;
    sinceTurn = 0;
    await turns.next();
  }
}
