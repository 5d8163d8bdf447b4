import { type Client, Refusal } from "./client.ts";
import type { RunEvent } from "./types.ts";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 8000;
/** Names of a run's last event. */
const LAST: ReadonlySet<string> = new Set(["done", "error", "aborted"]);

export const isLast = ({ event }: RunEvent): boolean => LAST.has(event);

/**
 * Calls back with the events of a run until its last one. After a lost connection, also by a restart of the service, it
 * goes on behind the last event that arrived. Rejects with a Refusal that waiting does not change, and when aborted.
 */
export async function followRun(
  client: Client,
  runId: string,
  onEvent: (event: RunEvent) => void,
  signal: AbortSignal,
): Promise<void> {
  let last = 0;
  let waitMs = FIRST_WAIT_MS;
  for (;;) {
    try {
      const { query } = await client.get<{ query: string }>(`api/page/address?run_id=${runId}`, signal);
      const path = `api/stream?run_id=${runId}&last_event_id=${last}${query === "" ? "" : `&${query}`}`;
      const response = await client.open(path, { signal });
      for await (const event of eventsOf(response)) {
        last = event.id;
        waitMs = FIRST_WAIT_MS;
        onEvent(event);
        if (isLast(event)) return;
      }
      // an ended run whose last event has arrived before
      if (response.status === 204) return;
    } catch (error) {
      if (signal.aborted || (error instanceof Refusal && [400, 404].includes(error.status))) throw error;
    }
    await sleep(waitMs, signal);
    waitMs = Math.min(LONGEST_WAIT_MS, waitMs * 2);
  }
}

/** Events of a stream of Server-Sent Events; frames without an id are left out. */
async function* eventsOf({ body }: Response): AsyncGenerator<RunEvent> {
  if (body === null) return;
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let pending = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const frames = (pending + value).split("\n\n");
    pending = frames.pop()!;
    for (const frame of frames) {
      const fields = new Map(frame.split("\n").map((line) => splitField(line)));
      const id = fields.get("id");
      if (id === undefined) continue;
      const data = JSON.parse(fields.get("data") ?? "null") as unknown;
      const isObject = typeof data === "object" && data !== null && !Array.isArray(data);
      yield {
        id: Number(id),
        event: fields.get("event") ?? "",
        data: (isObject ? data : { data }) as RunEvent["data"],
      };
    }
  }
}

function splitField(line: string): [name: string, value: string] {
  const at = line.indexOf(": ");
  return at < 0 ? [line, ""] : [line.slice(0, at), line.slice(at + 2)];
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
  });
}
