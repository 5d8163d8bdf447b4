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
