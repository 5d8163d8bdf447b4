import type { RunState } from "../api.ts";

/** States of a run in words. */
export const STATE_WORDS: Readonly<Record<RunState, string>> = {
  queued: "Queued",
  running: "Running",
  succeeded: "Succeeded",
  failed: "Failed",
  cancelled: "Cancelled",
  timed_out: "Timed out",
  interrupted: "Interrupted",
  expired: "Expired",
};

/** A time as seen from now: "12 s ago", "3 h ago", or a date. */
export function ago(time: string, now: number): string {
  const seconds = Math.max(0, (now - Date.parse(time)) / 1000);
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return new Date(time).toLocaleDateString();
}

/** A length of time: "340 ms", "4.2 s", "3 min 20 s". */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.floor((ms % 60_000) / 1000)} s`;
}

/** A number of bytes, by thousands: "2.13 GB". */
export function byteSize(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let [value, power] = [bytes, 0];
  while (value >= 999.5 && power + 1 < units.length) {
    value /= 1000;
    power += 1;
  }
  return `${power === 0 ? value : value.toPrecision(3)} ${units[power]}`;
}

/** First digits of an id, enough to tell one from another. */
export const shortId = (id: string): string => id.slice(0, 8);

/** Name of a run: the first words of its message or prompt, else a number. */
export const titleOf = ({ run_id, title }: { readonly run_id: string; readonly title?: string | undefined }): string =>
  title || `Run ${shortId(run_id)}`;
