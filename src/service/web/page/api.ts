// The service as the page sees it: types of what it sends, from the schemas and functions that make it, and a client.
// "#src" is the compiled service.
import type { Body } from "#src/service/hooks/http/response-schemas.js";
import type { RunForm as FormOfRun } from "#src/service/web/inspect.js";
import type { PageBody } from "#src/service/web/page-route.js";
import type { ShownParameter } from "#src/service/web/shown-graph.js";

export type { ListedModel as Model } from "#src/host/checkpoint/reports/list-models.js";
export type { NodeDescription } from "#src/nodes/describe.js";
export type { Receipt } from "#src/render/receipt/receipt.js";
export { RUN_STATES as STATES, type RunState } from "#src/service/hooks/run.js";
export type { Inspection } from "#src/service/web/inspect.js";
export type { ShownNode as GraphNode } from "#src/service/web/shown-graph.js";

export type Run = Body<"run">;
export type RunDetail = Body<"runStatus">;
export type Progress = NonNullable<RunDetail["progress"]>;
/** A run as the page lists it. */
export type ListedRun = PageBody<"listedRun">;
export type RunPage = PageBody<"runPage">;
/** Values that a run was started with. */
export type RunStart = PageBody<"runStart">;
export type Picture = PageBody<"picture">;

export interface RunEvent {
  readonly id: number;
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** A field of a form, of a graph that is shown or of one of the service. */
export type Parameter = Omit<ShownParameter, "named"> & Partial<Pick<ShownParameter, "named">>;

/** Fields of a run that is started again; parameters null: one message. */
export type RunForm = Omit<FormOfRun, "parameters"> & { readonly parameters: readonly Parameter[] | null };

/** A graph of the service, with the JSON Schema of the messages that it takes. */
export type NamedGraph = Omit<Body<"graphs">["graphs"][number], "schema"> & {
  readonly schema: {
    readonly properties: Readonly<Record<string, Omit<Parameter, "key" | "required">>>;
    readonly required: readonly string[];
  };
};

/** A request that the service refused, or that did not reach it (status 0). The message is one sentence. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Receives what every response says of the service. */
export interface ClientListener {
  /** The token is missing, wrong or no longer valid. */
  refused(): void;
  reached(isReachable: boolean): void;
}

/** Requests to the service with the token. Paths are relative to the page, which may stand below a prefix. */
export interface Client {
  get<T>(path: string, signal?: AbortSignal): Promise<T>;
  /** Posts JSON, or a file as it is. */
  post<T>(path: string, body?: object, signal?: AbortSignal): Promise<T>;
  /** Returns the response as it comes. Fails with a Refusal for any but 2xx. */
  open(path: string, init: RequestInit): Promise<Response>;
}

/** Creates a client, whose requests carry the token in a header. */
export function createClient(token: string, listener: ClientListener): Client {
  let refused: Refusal | undefined;
  const request = async (path: string, init: RequestInit): Promise<Response> => {
    // asked on, the service would count each attempt, and lock this address out
    if (refused !== undefined) throw refused;
    const headers = new Headers(init.headers);
    headers.set("Authorization", `Bearer ${latin1(token)}`);
    const response = await send(path, { ...init, headers, cache: "no-store", credentials: "omit" }, listener);
    if (response.ok) return response;
    const refusal = await refusalOf(response);
    if (refusal.status === 401) {
      refused = refusal;
      listener.refused();
    }
    throw refusal;
  };
  const json = async <T>(path: string, init: RequestInit) => (await (await request(path, init)).json()) as T;
  return {
    get: (path, signal) => json(path, { signal }),
    post(path, body, signal) {
      const isFile = body instanceof Blob;
      const type = isFile ? "application/octet-stream" : "application/json";
      return json(path, {
        method: "POST",
        signal,
        ...(body !== undefined && { headers: { "Content-Type": type }, body: isFile ? body : JSON.stringify(body) }),
      });
    },
    open: request,
  };
}

/** Whether the service has a token at all. */
export async function isConfigured(): Promise<boolean> {
  const response = await send("api/page/about", {});
  return ((await response.json()) as { is_configured: boolean }).is_configured;
}

async function send(path: string, init: RequestInit, listener?: ClientListener): Promise<Response> {
  try {
    const response = await fetch(path, init);
    listener?.reached(true);
    return response;
  } catch (error) {
    if (init.signal?.aborted) throw error;
    listener?.reached(false);
    throw new Refusal(0, "unreachable", "The service cannot be reached.");
  }
}

interface ComfyError {
  readonly code: string;
  readonly message: string;
}

async function refusalOf(response: Response): Promise<Refusal> {
  const { status } = response;
  try {
    const { code, error } = (await response.json()) as { code: string; error: string | ComfyError };
    // routes of the Comfy API have an envelope of their own
    return typeof error === "string"
      ? new Refusal(status, code, sentence(error))
      : new Refusal(status, error.code, sentence(error.message));
  } catch {
    // a proxy's own page
    return new Refusal(status, "unknown", `The service responded with status ${status}.`);
  }
}

/** The service's short refusals as sentences: "no such run" becomes "No such run." */
function sentence(text: string): string {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}

/** Headers hold bytes: a token's UTF-8, one character for each. */
const latin1 = (text: string) => String.fromCharCode(...new TextEncoder().encode(text));

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 8000;
/** Names of a run's last event. */
const LAST: ReadonlySet<string> = new Set(["done", "error", "aborted"]);

export const isLast = ({ event }: RunEvent): boolean => LAST.has(event);

/**
 * Calls back with the events of a run until its last one. After a lost connection, also by a restart of the service, it
 * continues after the last event that arrived. Rejects with a Refusal that waiting does not change, and when aborted.
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
