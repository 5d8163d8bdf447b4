import { HookError } from "../../hook-error.js";
import { type Call, type Route, requireRunId } from "../call.js";
import type { HookContext } from "../context.js";
import { readCursor, replayMetaFrame } from "../stream/sse.js";
import { StreamWriter } from "../stream/stream-writer.js";

const HEADERS = {
  "Content-Type": "text/event-stream; charset=utf-8",
  "Cache-Control": "no-store, no-transform",
  "X-Accel-Buffering": "no",
  "X-Content-Type-Options": "nosniff",
};

/** A reader that got more than this since its last turn waits for the next one. */
const BYTES_PER_TURN = 128 * 1024;

/** `GET /api/stream`: the events of one run, from any id, live until its terminal event. */
export function streamRoute(context: HookContext): Route {
  const handler = (call: Call) => stream(context, call);
  return { name: "stream", paths: ["/api/stream"], access: "run", handlers: { GET: handler } };
}

async function stream(context: HookContext, { req, res, query, params }: Call): Promise<void> {
  const { runs, slots, memory, config, clock } = context;
  const runId = requireRunId({ params, query });
  const wanted = readCursor(req.headers["last-event-id"]?.toString(), query.getAll("last_event_id"));
  if (wanted === undefined) throw new HookError("invalid_request", "last_event_id: expected one integer");
  // after any id: the state without events
  const { oldestEventId, lastEventId, end } = await runs.read(runId, Number.MAX_SAFE_INTEGER);
  const cursor = Math.min(Math.max(0, wanted.after), lastEventId);
  const isComplete = end && cursor === lastEventId;
  // an EventSource that comes back after the end would come back forever
  if (wanted.isResume && isComplete) return void res.writeHead(204, HEADERS).end();
  if (req.method === "HEAD") return void res.writeHead(200, HEADERS).end();
  if (res.destroyed) return;

  const release = slots.take(runId, () => res.destroy());
  const listener = runs.listen(runId);
  res.once("close", () => {
    release();
    listener.close();
    if (slots.size === 0) memory.clear();
  });
  res.writeHead(200, HEADERS);
  const writer = new StreamWriter(res, clock, memory, config.limits.slow_reader_bytes);
  writer.write(
    replayMetaFrame({
      replay_truncated: cursor + 1 < oldestEventId,
      oldest_event_id: oldestEventId,
      requested_last_event_id: wanted.after,
    }),
  );
  if (!isComplete)
    await follow(context, writer, listener, { runId, base: req.baseUrl, after: Math.max(cursor, oldestEventId - 1) });
  writer.end();
}

/** Sends what there is and what comes, until the terminal event, the reader's leave or the service's stop. */
async function follow(
  { slices, turns }: HookContext,
  writer: StreamWriter,
  listener: ReturnType<HookContext["runs"]["listen"]>,
  { runId, base, after }: { runId: string; base: string; after: number },
): Promise<void> {
  /** The slice is gone when this returns: a reader that waits holds nothing. */
  const sendAfter = async (id: number) => {
    const slice = await slices.after(runId, id, base);
    // trimmed under a slow reader: ended here, it resumes and is told by replay_meta
    if (slice === undefined || slice.firstId > id + 1 || !writer.isOpen)
      return { bytes: 0, id, isEnd: slice !== undefined };
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
