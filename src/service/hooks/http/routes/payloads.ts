import type { z } from "zod";
import { fileUrl, mountFileUrls } from "../../file-url.js";
import type { RunStatus, RunSummary, StoredEvent } from "../../run.js";
import { maxRunSeconds, type QueuedWake, type Started } from "../../runs/run-starter.js";
import type { HookContext } from "../context.js";
import type { ResponseSchemas } from "../schemas.js";

/** Body of a start's 200. `base`: mount path of the router. */
export function runPayload(
  context: HookContext,
  base: string,
  started: Started,
): z.output<ResponseSchemas["runPayload"]> {
  const query = new URLSearchParams({ run_id: started.runId });
  if (context.config.web.stream_auth !== "none") {
    const until = retainedUntilSeconds(context, started.createdMark);
    const { expires, signature } = context.signer.sign(started.runId, until);
    query.set("expires", expires);
    query.set("signature", signature);
  }
  return {
    ok: true,
    run_id: started.runId,
    status: "queued",
    session_key: started.sessionKey,
    created_at: isoTime(started.createdAt),
    stream_url: `${base}/api/stream?${query}`,
    status_url: statusUrl(base, started.runId),
  };
}

export const statusUrl = (base: string, runId: string): string => `${base}/api/runs/${runId}`;

/** Latest time, in steady seconds, at which a run of that age is removed: after the longest wait, run and retention. */
function retainedUntilSeconds({ config: { limits } }: HookContext, createdMark: number): number {
  return createdMark / 1000 + limits.queue_seconds + maxRunSeconds(limits) + limits.retention_hours * 3600;
}

export const queueMetadata = (wake: QueuedWake): z.output<ResponseSchemas["queueMetadata"]> => ({
  ok: true,
  mode: "next-heartbeat",
  queued: true,
  session_key: wake.sessionKey,
  chat_id: wake.chatId,
  event_id: wake.eventId,
  pending: wake.pending,
});

/** One run in a list. */
export function runItem(run: RunSummary): z.output<ResponseSchemas["runList"]>["runs"][number] {
  return {
    run_id: run.id,
    status: run.state,
    done: run.state !== "queued" && run.state !== "running",
    session_key: run.sessionKey,
    chat_id: run.chatId,
    origin: run.origin,
    name: run.name,
    created_at: isoTime(run.createdAt),
    started_at: run.startedAt === null ? null : isoTime(run.startedAt),
    finished_at: run.finishedAt === null ? null : isoTime(run.finishedAt),
    timeout_seconds: run.timeoutSeconds,
    oldest_event_id: run.oldestEventId,
    last_event_id: run.lastEventId,
    error: run.error?.error ?? null,
    error_code: run.error?.code ?? null,
  };
}

/** The state of one run. `base`: mount path of the router. */
export function runStatus(base: string, run: RunStatus): z.output<ResponseSchemas["runStatus"]> {
  const { terminal, progress, queuePosition, fileCount } = run;
  const isDone = terminal?.event === "done";
  return {
    ok: true,
    ...runItem(run),
    queue_position: queuePosition,
    progress: progress && { value: progress.value, max: progress.max, node: progress.node },
    files: run.files.map(({ name, contentType }) => ({
      name,
      url: base + fileUrl(run.id, name),
      content_type: contentType,
    })),
    file_count: fileCount,
    response: isDone ? responseOf(terminal, base, run.id) : null,
  };
}

function responseOf({ data }: StoredEvent, base: string, runId: string): string {
  const { response } = JSON.parse(data) as { response: string };
  return mountFileUrls(response, base, runId);
}

const isoTime = (ms: number) => new Date(ms).toISOString();
