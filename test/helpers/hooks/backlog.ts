import type { BacklogLimits } from "#src/service/hooks/store/admission.js";

/** Limits of pending wakes: so many for a session, without an end but for what is named. */
export const wakeLimits = (
  wakes: number,
  { bytes = 1e9, all = {} }: { bytes?: number; all?: { wakes?: number; bytes?: number } } = {},
): BacklogLimits => ({ session: { wakes, bytes }, service: { wakes: 1e9, bytes: 1e9, ...all } });
