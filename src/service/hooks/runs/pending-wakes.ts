import type { Limits } from "../hook-config.js";
import type { BacklogLimits } from "../store/backlog.js";

// decisions 142, 143
export const TOO_MANY_PENDING: Record<keyof BacklogLimits, string> = {
  session: "this session has too many pending events, or too large ones, try again later",
  service: "the service has too many pending events, or too large ones, try again later",
};

export const backlogLimits = (limits: Limits): BacklogLimits => ({
  session: { wakes: limits.pending_wakes_per_session, bytes: limits.pending_wake_bytes_per_session },
  service: { wakes: limits.pending_wakes, bytes: limits.pending_wake_bytes },
});

/** The message of a run that takes pending texts, a line each whatever line breaks they hold; null for an empty one. */
export function composeMessage(pending: readonly string[], message: string | null): string | null {
  const lines = pending.map((text) => `System event: ${text.replace(/[\r\n\u2028\u2029]+/g, " ")}`);
  if (message !== null) lines.push(message);
  return lines.length === 0 ? null : lines.join("\n");
}
