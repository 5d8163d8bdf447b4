import type { StoredEvent } from "../../run.js";

/** A comment that prevents proxies from closing a silent stream. */
export const KEEP_ALIVE_FRAME = ": keep-alive\n\n";

const RECONNECT_MS = 3000;

/** The first frame of every stream: no id, so it never moves a reader's cursor. */
export function replayMetaFrame(meta: {
  replay_truncated: boolean;
  oldest_event_id: number;
  requested_last_event_id: number;
}): string {
  return `event: replay_meta\ndata: ${JSON.stringify(meta)}\nretry: ${RECONNECT_MS}\n\n`;
}

/** One stored event as a frame. Line breaks would end a field, so they become blanks. */
export function eventFrame({ id, event, data }: StoredEvent): string {
  return `id: ${id}\nevent: ${oneLine(event)}\ndata: ${oneLine(data)}\n\n`;
}

const oneLine = (text: string) => text.replace(/[\r\n]+/g, " ");

/**
 * Id after which a stream begins: the Last-Event-ID header, else the query's last_event_id, else -1 (all). undefined
 * where it is not one integer. It may be larger than any id.
 */
export function readCursor(
  header: string | undefined,
  query: readonly string[],
): { after: number; isResume: boolean } | undefined {
  const fromHeader = header?.trim() ?? "";
  if (fromHeader !== "") return cursor(fromHeader, true);
  if (query.length > 1) return undefined;
  const fromQuery = query[0]?.trim() ?? "";
  return fromQuery === "" ? { after: -1, isResume: false } : cursor(fromQuery, false);
}

function cursor(text: string, isResume: boolean): { after: number; isResume: boolean } | undefined {
  if (!/^-?\d+$/.test(text)) return undefined;
  return { after: Math.max(-1, Math.min(Number(text), Number.MAX_SAFE_INTEGER)), isResume };
}
