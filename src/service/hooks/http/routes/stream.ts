import { HookError } from "../../hook-error.js";
import type { EventSlice } from "../../types.js";
import type { Call, Route } from "../call.js";
import type { HookContext } from "../context.js";
import { eventFrame, readCursor, replayMetaFrame } from "../stream/sse.js";
import { StreamWriter } from "../stream/stream-writer.js";
import { requireRunId } from "./runs.js";

const HEADERS = {
  "Content-Type": "text/event-stream; charset=utf-8",
  "Cache-Control": "no-store, no-transform",
  "X-Accel-Buffering": "no",
  "X-Content-Type-Options": "nosniff",
};

/** `GET /api/stream`: the events of one run, from any id, live until its terminal event. */
export function streamRoute(context: HookContext): Route {
  const handler = (call: Call) => stream(context, call);
  return { name: "stream", paths: ["/api/stream"], access: "run", handlers: { GET: handler } };
}

async function stream(context: HookContext, { req, res, query, params }: Call): Promise<void> {
  const { runs, slots, config, clock } = context;
  const runId = requireRunId({ params, query });
  const wanted = readCursor(req.headers["last-event-id"]?.toString(), query.getAll("last_event_id"));
  if (wanted === undefined) throw new HookError("invalid_request", "last_event_id: expected one integer");
  const first = await runs.read(runId, Math.max(0, wanted.after));
  // an EventSource that comes back after the end would come back forever
  if (wanted.isResume && first.end && first.events.length === 0) return void res.writeHead(204, HEADERS).end();
  if (req.method === "HEAD") return void res.writeHead(200, HEADERS).end();
  if (res.destroyed) return;

  const release = slots.take(runId, () => res.destroy());
  const gone = new AbortController();
  res.once("close", () => {
    release();
    gone.abort();
  });
  res.writeHead(200, HEADERS);
  const writer = new StreamWriter(res, clock, {
    slowBytes: config.limits.slow_reader_bytes,
    slowSeconds: config.limits.slow_reader_seconds,
  });
  const cursor = Math.min(Math.max(0, wanted.after), first.lastEventId);
  writer.write(
    replayMetaFrame({
      replay_truncated: first.truncated,
      oldest_event_id: first.oldestEventId,
      requested_last_event_id: wanted.after,
    }),
  );
  await writeEvents(writer, first);
  if (!first.end) await follow(context, writer, runId, first.events.at(-1)?.id ?? cursor, gone.signal);
  writer.end();
}

async function follow({ runs }: HookContext, writer: StreamWriter, runId: string, after: number, signal: AbortSignal) {
  for await (const slice of runs.follow(runId, after, signal)) {
    // trimmed under a slow reader: ended here, it resumes and is told by replay_meta
    if (slice.truncated) return;
    await writeEvents(writer, slice);
    if (!writer.isOpen) return;
  }
}

async function writeEvents(writer: StreamWriter, { events }: EventSlice): Promise<void> {
  for (const event of events) {
    if (!writer.isOpen) return;
    writer.write(eventFrame(event));
    await writer.ready();
  }
}
