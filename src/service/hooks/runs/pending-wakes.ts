import type { BacklogLimits } from "../store/backlog.js";
import type { Limits } from "../types.js";
import { systemEventLine } from "./heartbeat.js";

export const TOO_MANY_PENDING: Record<keyof BacklogLimits, string> = {
  session: "this session has too many pending events, or too large ones",
  service: "too many pending events wait, or too large ones, try again later",
};

export const backlogLimits = (limits: Limits): BacklogLimits => ({
  session: { wakes: limits.pending_wakes_per_session, bytes: limits.pending_wake_bytes_per_session },
  service: { wakes: limits.pending_wakes, bytes: limits.pending_wake_bytes },
});

/** The message of a run that takes pending texts; null where there is nothing to say. */
export function composeMessage(pending: readonly string[], message: string | null): string | null {
  const lines = pending.map(systemEventLine);
  if (message !== null) lines.push(message);
  return lines.length === 0 ? null : lines.join("\n");
}
