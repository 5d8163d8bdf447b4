import {
  fileUrl,
  mountFileUrls,
  type RunFile,
  type RunStatus,
  type RunSummary,
  type StoredEvent,
  type StoredStatus,
} from "../../run.js";
import { createRetryPolicy } from "../../runs/outcome.js";
import type { GroupPage } from "../../runs/run-reader.js";
import type { QueuedWake, Started, StartedGroup } from "../../runs/run-starter.js";
import { maxRunSeconds } from "../../runs/terms.js";
import type { Delivery } from "../../store/deliveries.js";
import { messageId } from "../../webhooks/deliverer.js";
import { eventOf } from "../../webhooks/endpoints.js";
import type { HookContext } from "../context.js";
import type { Body } from "../response-schemas.js";

/** Body of a start's 200. `base`: mount path of the router. */
export function runPayload(context: HookContext, base: string, started: Started): Body<"runPayload"> {
  const signed = signedQuery(context, started.runId, retainedUntilSeconds(context, started));
  return {
    ok: true,
    run_id: started.runId,
    status: "queued",
    session_key: started.sessionKey,
    created_at: isoTime(started.createdAt),
    stream_url: streamUrl(base, started.runId, signed),
    status_url: statusUrl(base, started.runId),
  };
}

/** Body of a group's 202. */
export function groupPayload(context: HookContext, base: string, group: StartedGroup): Body<"groupPayload"> {
  const { groupId } = group;
  const signed = new URLSearchParams(signedQuery(context, groupId, retainedUntilSeconds(context, group)));
  return {
    ok: true,
    group_id: groupId,
    run_ids: [...group.runIds],
    created_at: isoTime(group.createdAt),
    stream_url: `${base}/api/groups/${groupId}/stream${signed.size === 0 ? "" : `?${signed}`}`,
  };
}

/** Data of the event of an end in a group's stream. The addresses of its files are signed. */
export function groupEnd(context: HookContext, base: string, { index, endedMark, run }: GroupPage["ends"][number]) {
  const { id, state, name, error, finishedAt, files, fileCount } = run;
  const signed = signedUntilRemoved(context, id, endedMark);
  return {
    index,
    run_id: id,
    status: state,
    name,
    finished_at: finishedAt === null ? null : isoTime(finishedAt),
    error: error?.error ?? null,
    error_code: error?.code ?? null,
    files: fileItems(base, id, files, signed),
    file_count: fileCount,
  };
}

/** Query that opens the stream and files of an ended run as long as it is kept. */
const signedUntilRemoved = (context: HookContext, runId: string, endedMark: number): Record<string, string> =>
  signedQuery(context, runId, endedMark / 1000 + context.config.limits.retention_hours * 3600);

function fileItems(base: string, runId: string, files: readonly RunFile[], signed: Record<string, string> = {}) {
  const query = new URLSearchParams(signed).toString();
  return files.map(({ name, contentType }) => ({
    name,
    url: base + fileUrl(runId, name) + (query === "" ? "" : `?${query}`),
    content_type: contentType,
  }));
}

const streamUrl = (base: string, runId: string, signed: Record<string, string>): string =>
  `${base}/api/stream?${new URLSearchParams({ run_id: runId, ...signed })}`;

/** Query that opens a run's stream and files until a time in steady seconds. */
export const signedQuery = ({ config, signer }: HookContext, runId: string, until: number): Record<string, string> =>
  config.web.stream_auth === "none" ? {} : { ...signer.sign(runId, until) };

/** Body of a webhook, from a delivery and its run, which may have been removed. */
export function runEndedPayload(context: HookContext, delivery: Delivery, run: StoredStatus | null): Body<"runEnded"> {
  const base = context.config.web.public_url ?? "";
  const { runId } = delivery;
  const signed = signedUntilRemoved(context, runId, delivery.endedMark);
  return {
    type: `run.${delivery.runState}`,
    timestamp: isoTime(delivery.finishedAt),
    data: {
      run_id: runId,
      status: delivery.runState,
      session_key: delivery.sessionKey,
      name: run?.name ?? null,
      tags: [...(run?.tags ?? [])],
      error_code: run?.error?.code ?? null,
      status_url: statusUrl(base, runId),
      stream_url: streamUrl(base, runId, signed),
      files: fileItems(base, runId, run?.files ?? [], signed),
      file_count: run?.fileCount ?? 0,
    },
  };
}

/** One delivery of a webhook. */
export function deliveryItem(delivery: Delivery): Body<"delivery">["delivery"] {
  return {
    id: delivery.id,
    webhook: delivery.endpoint,
    webhook_id: messageId(delivery),
    type: eventOf(delivery.runState),
    run_id: delivery.runId,
    session_key: delivery.sessionKey,
    created_at: isoTime(delivery.finishedAt),
    state: delivery.state,
    attempts: delivery.attempts.map(({ at, ms, status, error }) => ({ at: isoTime(at), ms, status, error })),
  };
}

export const statusUrl = (base: string, runId: string): string => `${base}/api/runs/${runId}`;

/** Latest time, in steady seconds, at which a run of that age is removed: after the longest wait, run and retention. */
function retainedUntilSeconds(
  { config: { limits, web } }: HookContext,
  { createdMark, dueMark = createdMark }: Pick<Started, "createdMark" | "dueMark">,
): number {
  const runSeconds = maxRunSeconds(limits);
  const runs = runSeconds + createRetryPolicy(web.retries).mostSeconds(runSeconds);
  return dueMark / 1000 + limits.queue_seconds + runs + limits.retention_hours * 3600;
}

export const queueMetadata = (wake: QueuedWake): Body<"queueMetadata"> => ({
  ok: true,
  mode: "next-heartbeat",
  queued: true,
  session_key: wake.sessionKey,
  chat_id: wake.chatId,
  event_id: wake.eventId,
  pending: wake.pending,
});

/** One run in a list. */
export function runItem(run: RunSummary): Body<"run"> {
  return {
    run_id: run.id,
    status: run.state,
    done: run.state !== "queued" && run.state !== "running",
    session_key: run.sessionKey,
    chat_id: run.chatId,
    origin: run.origin,
    name: run.name,
    priority: run.priority,
    tags: [...run.tags],
    attempt: run.attempt,
    due_at: run.dueMark === null ? null : isoTime(run.dueMark),
    deadline_at: run.deadlineMark === null ? null : isoTime(run.deadlineMark),
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
export function runStatus(base: string, run: RunStatus): Body<"runStatus"> {
  const { terminal, progress, queuePosition, fileCount } = run;
  const isDone = terminal?.event === "done";
  return {
    ok: true,
    ...runItem(run),
    queue_position: queuePosition,
    progress: progress && { value: progress.value, max: progress.max, node: progress.node },
    files: fileItems(base, run.id, run.files),
    file_count: fileCount,
    response: isDone ? responseOf(terminal, base, run.id) : null,
  };
}

function responseOf({ data }: StoredEvent, base: string, runId: string): string {
  const { response } = JSON.parse(data) as { response: string };
  return mountFileUrls(response, base, runId);
}

const isoTime = (ms: number) => new Date(ms).toISOString();
