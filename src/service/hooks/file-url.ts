const filesPath = (runId: string): string => `/api/runs/${runId}/files/`;

/** Path of a run's file below where the router is mounted. */
export const fileUrl = (runId: string, name: string): string => `${filesPath(runId)}${encodeURIComponent(name)}`;

/**
 * A text of a run, JSON or not, in which the paths of the run's files begin with `base`, where the router is mounted
 * for the one who reads it. What is part of a longer address stays: an agent may have completed it.
 */
export function mountFileUrls(text: string, base: string, runId: string): string {
  const path = filesPath(runId);
  if (base === "" || !text.includes(path)) return text;
  const prefix = base.replace(/["\\]/g, encodeURIComponent);
  const pieces = text.split(path);
  const last = pieces.pop()!;
  return pieces.map((piece) => piece + (endsInAddress(piece) ? "" : prefix) + path).join("") + last;
}

/** Whether the text goes on with the rest of an address; n of a line break's `\n` in JSON does not. */
function endsInAddress(text: string): boolean {
  const last = text.at(-1) ?? "";
  if (!/[\w.~%:/-]/.test(last)) return false;
  if (!"bfnrt".includes(last)) return true;
  let backslashes = 0;
  while (text.at(-2 - backslashes) === "\\") backslashes += 1;
  return backslashes % 2 === 0;
}
