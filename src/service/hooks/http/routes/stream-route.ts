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

/** Most bytes for one reader before it waits for its next turn. */
const BYTES_PER_TURN = 128 * 1024;

/** `GET /api/stream`: the events of one run, after any id, live until its terminal event. */
export function streamRoute(context: HookContext): Route {
  const handler = (call: Call) => stream(context, call);
  return { name: "stream", paths: ["/api/stream"], access: "run", handlers: { GET: handler } };
}

async function stream(context: HookContext, { req, res, query, params }: Call): Promise<void> {
  const { runs, slots, memory, config, clock } = context;
  const runId = requireRunId({ params, query });
  const request = readCursor(req.headers["last-event-id"]?.toString(), query.getAll("last_event_id"));
  if (request === undefined) throw new HookError("invalid_request", "last_event_id: expected one integer");
  // after the largest id: ids without events
  const { oldestEventId, lastEventId, end } = await runs.read(runId, Number.MAX_SAFE_INTEGER);
  const cursor = Math.min(Math.max(0, request.after), lastEventId);
  const isComplete = end && cursor === lastEventId;
  // without a 204 an EventSource would reconnect for ever after the end
  if (request.isResume && isComplete) return void res.writeHead(204, HEADERS).end();
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
      requested_last_event_id: request.after,
    }),
  );
  if (!isComplete)
    await follow(context, writer, listener, { runId, base: req.baseUrl, after: Math.max(cursor, oldestEventId - 1) });
  writer.end();
}

/** Sends stored and new events until the terminal one, the reader's leave or the service's stop. */
async function follow(
  { slices, turns }: HookContext,
  writer: StreamWriter,
  listener: ReturnType<HookContext["runs"]["listen"]>,
  { runId, base, after }: { runId: string; base: string; after: number },
): Promise<void> {
  /** Drops the slice when it returns: a reader that waits holds nothing. */
  const sendAfter = async (id: number) => {
    const slice = await slices.after(runId, id, base);
    // trimmed behind a slow reader: ended here, it resumes and replay_meta reports the gap
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
