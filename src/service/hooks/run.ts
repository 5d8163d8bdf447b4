import type { RunGraph } from "../agent/agent.js";

export const RUN_STATES = [
  "queued",
  "running",
  "succeeded",
  "failed",
  "cancelled",
  "timed_out",
  "interrupted",
  "expired",
] as const;
export type RunState = (typeof RUN_STATES)[number];
export type TerminalState = Exclude<RunState, "queued" | "running">;

export const RUN_ORIGINS = ["agent", "wake", "heartbeat", "comfy", "batch"] as const;
export type RunOrigin = (typeof RUN_ORIGINS)[number];

/** Fields of a start that its run keeps as they are. */
export interface StartFields {
  readonly origin: RunOrigin;
  readonly name?: string | null;
  /** Default: the agent's default graph, if it has graphs. */
  readonly graph?: RunGraph | null;
  /** Trace context of the request, 55 characters: the agent's run has it. */
  readonly traceparent?: string | null;
  /** Facts of a prompt of ComfyUI's classic API, as JSON: the agent's run has them. */
  readonly promptFacts?: string | null;
}

/** Terms of a run (runs/terms.ts), with the defaults filled in and times as marks. */
export interface RunTerms {
  readonly timeoutSeconds: number;
  /** -100 to 100: higher ones start first, across sessions. */
  readonly priority: number;
  /** Steady ms (clock.ts) before which it does not start; null: at once. */
  readonly dueMark: number | null;
  /** Steady ms by which it ends; null: none. */
  readonly deadlineMark: number | null;
  /** Different texts without control characters. */
  readonly tags: readonly string[];
}

/** Terms of a run that asks for none, but for its time. */
export const PLAIN_TERMS = { priority: 0, dueMark: null, deadlineMark: null, tags: [] } as const;

/** One run without its message. Times are wall clock ms. */
export interface RunSummary extends RunTerms {
  readonly id: string;
  /** Order of creation; the cursor of lists. */
  readonly seq: number;
  readonly sessionKey: string;
  /** Row id of the session. */
  readonly chatId: number;
  readonly origin: RunOrigin;
  readonly name: string | null;
  readonly state: RunState;
  /** Number of the attempt that runs, ran last or comes next, from 1. */
  readonly attempt: number;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  /** Smallest id still stored, or the id of the next event where none is stored. Above 1: the head was trimmed. */
  readonly oldestEventId: number;
  /** 0 before the first event. */
  readonly lastEventId: number;
  /** Set for failed, timed_out, interrupted and expired runs. */
  readonly error: { readonly error: string; readonly code: string } | null;
}

export interface RunRow extends RunSummary {
  readonly message: string;
  readonly graph: RunGraph | null;
  /** Trace context of its request. */
  readonly traceparent: string | null;
  /** Facts of a prompt of ComfyUI's classic API, as JSON; null for every other run. */
  readonly promptFacts: string | null;
}

/** The newest progress of a run. */
export interface RunProgress {
  readonly value: number;
  readonly max: number;
  readonly node: string | null;
}

/** The stored state of one run, without its message and without the events before its last. */
export interface StoredStatus extends RunSummary {
  readonly progress: RunProgress | null;
  /** The first files, in the order they were reported. */
  readonly files: readonly RunFile[];
  /** Number of all files, those missing above included. */
  readonly fileCount: number;
  /** Null before the end. */
  readonly terminal: StoredEvent | null;
}

export interface RunStatus extends StoredStatus {
  /** Position among all queued runs, 1 for the next; null where the run is not queued. */
  readonly queuePosition: number | null;
}

/** Selects the runs of a list: those that match every field that is set. */
export interface RunFilter {
  readonly state?: RunState;
  readonly sessionKey?: string;
  readonly tag?: string;
}

export interface StoredEvent {
  /** From 1, without gaps within a run. */
  readonly id: number;
  readonly event: string;
  /** One line of JSON, as it goes on the wire. */
  readonly data: string;
}

/** The end of one run of a group. */
export interface GroupEnd {
  /** Position among the ends of the group, from 1 without gaps: the cursor of readers. */
  readonly position: number;
  /** Position of the run in the group, from 0. */
  readonly index: number;
  readonly runId: string;
  /** Steady ms (clock.ts). */
  readonly endedMark: number;
}

/** A bounded piece of a group's ends. */
export interface GroupSlice {
  /** Number of runs. */
  readonly size: number;
  /** Number of runs that have ended. */
  readonly ended: number;
  /** Smallest position still stored, or the next one where none is. Above 1: the oldest runs were removed. */
  readonly oldest: number;
  /** In order of position; those of removed runs are missing. */
  readonly ends: readonly GroupEnd[];
}

export interface RunFile {
  readonly name: string;
  readonly path: string;
  /** null: derived from the name. */
  readonly contentType: string | null;
}

/** A bounded piece of a run's events. */
export interface EventSlice {
  readonly events: readonly StoredEvent[];
  readonly oldestEventId: number;
  readonly lastEventId: number;
  /** The head was trimmed past the reader: ids between the cursor and the first event here are gone. */
  readonly truncated: boolean;
  /** Nothing will follow: the run has ended and its terminal event is in this slice or before it. */
  readonly end: boolean;
}

const filesPath = (runId: string): string => `/api/runs/${runId}/files/`;

/** Path of a run's file below the mount path of the router. */
export const fileUrl = (runId: string, name: string): string => `${filesPath(runId)}${encodeURIComponent(name)}`;

/**
 * Puts `base`, the reader's mount path of the router, before the paths of the run's files in a text, JSON or not. A path
 * within a longer address stays as it is: the agent may have completed it.
 */
export function mountFileUrls(text: string, base: string, runId: string): string {
  const path = filesPath(runId);
  if (base === "" || !text.includes(path)) return text;
  const prefix = base.replace(/["\\]/g, encodeURIComponent);
  const pieces = text.split(path);
  const last = pieces.pop()!;
  return pieces.map((piece) => piece + (endsInAddress(piece) ? "" : prefix) + path).join("") + last;
}

/** Whether the text ends in part of an address; the n of `\n` in JSON is none. */
function endsInAddress(text: string): boolean {
  const last = text.at(-1) ?? "";
  if (!/[\w.~%:/-]/.test(last)) return false;
  if (!"bfnrt".includes(last)) return true;
  let backslashes = 0;
  while (text.at(-2 - backslashes) === "\\") backslashes += 1;
  return backslashes % 2 === 0;
}
