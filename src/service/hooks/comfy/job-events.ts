import { HookError } from "../hook-error.js";
import type { Call } from "../http/call.js";
import type { HookContext } from "../http/context.js";
import { openStream, STREAM_HEADERS } from "../http/routes/stream-route.js";
import { eventFrame, readCursor } from "../http/stream/stream-memory.js";
import type { StreamWriter } from "../http/stream/stream-writer.js";
import type { RunStatus, StoredEvent } from "../run.js";
import { TERMINAL_EVENTS } from "../runs/outcome.js";
import type { ComfyParts, ComfyRoute } from "./comfy-parts.js";
import { JobView } from "./job-view.js";
import { progressJson, stateOf } from "./jobs.js";

const RETRY_SECONDS = 5;

/**
 * The events of a job: a snapshot, then what changes, under the contract's names. A reader that sends the id of the
 * last event gets what followed it, without a snapshot. The final status is last.
 */
export function jobEventsRoute(context: HookContext, parts: ComfyParts): ComfyRoute {
  return {
    name: "stream",
    operation: "v2_events",
    paths: ["/api/v2/jobs/:id/events"],
    method: "GET",
    summary: "Stream what changes in a job, as Server-Sent Events",
    headers: context.parameters.resume,
    responses: { 200: { description: "A snapshot first; the final status is last.", type: "text/event-stream" } },
    refusals: ["job_not_found", "too_many_streams"],
    handle: (call) => stream(context, parts, call),
  };
}

async function stream(context: HookContext, parts: ComfyParts, call: Call): Promise<void> {
  const { runs, turns } = context;
  const { req, res, params } = call;
  const id = params.id!;
  const status = await parts.jobs.status(id);
  const request = readCursor(req.headers["last-event-id"]?.toString(), []);
  if (request === undefined) throw new HookError("invalid_request", "Last-Event-ID: expected one integer");
  if (req.method === "HEAD") return void res.writeHead(200, STREAM_HEADERS).end();
  if (res.destroyed) return;
  const { writer, listener } = openJobStream(context, res, id);
  const frames = new Frames(parts, call, status, writer);
  await turns.next();
  await frames.skip(request.isResume ? request.after : undefined);
  while (writer.isOpen && !listener.isClosed) {
    const { events, end } = await runs.read(id, frames.cursor);
    await frames.send(events);
    if (end) break;
    await writer.ready();
    if (events.length === 0) await listener.changed();
    else await turns.next();
  }
  writer.end();
}

function openJobStream(context: HookContext, res: Call["res"], id: string): ReturnType<typeof openStream> {
  try {
    return openStream(context, res, { id, listen: () => context.runs.listen(id) });
  } catch (error) {
    if (!(error instanceof HookError)) throw error;
    throw new HookError("too_many_streams", error.message, { retryAfterSeconds: RETRY_SECONDS });
  }
}

/** The frames of one reader. */
class Frames {
  readonly #parts: ComfyParts;
  readonly #call: Call;
  readonly #run: RunStatus;
  readonly #writer: StreamWriter;
  readonly #view = new JobView();

  constructor(parts: ComfyParts, call: Call, run: RunStatus, writer: StreamWriter) {
    this.#parts = parts;
    this.#call = call;
    this.#run = run;
    this.#writer = writer;
  }

  get cursor(): number {
    return this.#view.cursor;
  }

  /** Reads the events that the reader has, or all so far and sends what they come to. */
  async skip(after: number | undefined): Promise<void> {
    const { jobs } = this.#parts;
    const last = after ?? this.#run.lastEventId;
    const { id, state, queuePosition, finishedAt, lastEventId } = this.#run;
    if (finishedAt !== null && (after === undefined || after >= lastEventId)) {
      // the reader stops at it: what else it wants is in the job
      await jobs.readUpTo(id, this.#view, lastEventId);
      return this.#write("status", { status: stateOf({ state }) });
    }
    await jobs.readUpTo(id, this.#view, last);
    if (after !== undefined) return;
    const position = queuePosition === null ? {} : { queue_position: queuePosition };
    this.#write("status", { status: stateOf({ state }), ...position });
    if (this.#view.progress !== undefined) this.#write("progress", progressJson(this.#view.progress));
    for (const output of this.#view.outputs) await this.#writeOutput(output);
  }

  async send(events: readonly StoredEvent[]): Promise<void> {
    let hasProgress = false;
    for (const event of events) {
      const outputs = this.#view.outputs.length;
      const change = this.#view.take(event);
      hasProgress ||= change === "progress";
      if (event.event === "status") this.#write("status", { status: "running" });
      else if (change === "output") await this.#writeOutput(this.#view.outputs[outputs]!);
      else if (TERMINAL_EVENTS.some((name) => name === event.event)) {
        if (hasProgress) this.#write("progress", progressJson(this.#view.progress));
        hasProgress = false;
        const { state } = await this.#parts.jobs.status(this.#run.id);
        this.#write("status", { status: stateOf({ state }) });
      }
    }
    // many steps of one slice are one snapshot
    if (hasProgress) this.#write("progress", progressJson(this.#view.progress));
  }

  async #writeOutput(output: JobView["outputs"][number]): Promise<void> {
    const json = await this.#parts.jobs.outputJson(this.#call, this.#run, output);
    if (json !== undefined) this.#write("output", json);
  }

  #write(event: string, data: unknown): void {
    this.#writer.write(eventFrame({ id: this.#view.cursor, event, data: JSON.stringify(data) }));
  }
}
