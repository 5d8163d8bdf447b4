import type { z } from "zod";
import { ERROR_CODES } from "../../base/errors.js";
import { lazy, loadZod } from "../../base/lazy.js";
import { MOST_MODELS_BYTES, NETWORK_DEVICES } from "../../host/checkpoint/session/options.js";
import { FORMAT, PICTURE_TYPES, type PictureFormat } from "../../io/pictures/format.js";
import type { DeviceChoice } from "../../tensor/device/device.js";
import { incomingSchema } from "./incoming.js";
import { normalizeSessionKey, sessionKeyFault } from "./run-terms.js";
import { webhooksSchema } from "./webhooks.js";

/** Whether a failed run may have an error code; `agent_failed` stands for errors of an agent without one. */
const isRunCode = (code: string) => code === "agent_failed" || Object.hasOwn(ERROR_CODES, code);

/** The whole configuration of the command line and the service; every key has its default and its meaning here. @internal */
export const configSchema = lazy(() => {
  const { z } = loadZod();
  const count = (value: number, meaning: string) => z.int().positive().default(value).describe(meaning);
  const countOrOff = (value: number, meaning: string) => z.int().nonnegative().default(value).describe(meaning);
  const flag = (value: boolean, meaning: string) => z.boolean().default(value).describe(meaning);
  const nonEmpty = z.string().min(1);
  const path = nonEmpty;

  const sessionKey = nonEmpty.check(({ value, issues }) => {
    const message = sessionKeyFault(normalizeSessionKey(value));
    if (message !== undefined) issues.push({ code: "custom", input: value, message });
  });

  const remoteImageApi = z.strictObject({
    base_url: z
      .url({ protocol: /^https?$/ })
      .default("https://api.stability.ai")
      .describe("Address of the service that `ext remoteImageApi` calls."),
    keys: z
      .array(z.strictObject({ name: nonEmpty, key: nonEmpty }))
      .default([])
      .describe("Keys of that service, by the name that the node gives; without keys, `STABILITY_API_KEY`."),
  });

  /** Options of `createGraphAgent` under their wire names. */
  const graphAgent = z.strictObject({
    graph: path.optional(),
    graphs: z.record(z.string(), path).optional(),
    partial: z.boolean().optional(),
    targets: z.array(nonEmpty).optional(),
    extra_pnginfo: z.record(z.string(), z.unknown()).optional(),
    cache_dir: path.optional(),
    previews: z.boolean().optional(),
  });

  const format = z
    .strictObject({
      type: z.enum(PICTURE_TYPES).optional().describe("Format of saved pictures, `png` if absent."),
      quality: z.int().optional().describe("Quality of webp, jpeg and avif files, 1 to 100; 90 if absent."),
      lossless: z.boolean().optional().describe("true keeps every pixel of webp and avif files."),
      bit_depth: z.int().optional().describe("Bits of a sample of png files, 8 or 16; 8 if absent."),
    })
    .transform(({ bit_depth: bitDepth, ...rest }) => ({ ...rest, ...(bitDepth !== undefined && { bitDepth }) }))
    .refine(
      (format): format is PictureFormat => FORMAT[1](format),
      `expected ${FORMAT[0].replace("bitDepth", "bit_depth")}`,
    );

  const retries = z.strictObject({
    attempts: z
      .int()
      .min(1)
      .max(100)
      .default(3)
      .describe("Most attempts of a run whose error is transient, including the first; 1: no retry."),
    first_delay_seconds: z
      .number()
      .positive()
      .max(86_400)
      .default(5)
      .describe("Delay after the first attempt. It doubles after each attempt, with up to 25 % jitter."),
    longest_delay_seconds: z.number().positive().max(86_400).default(300).describe("Longest delay between attempts."),
    codes: z
      .array(z.string().refine(isRunCode, "expected agent_failed or a code of docs/errors.md"))
      .default([])
      .describe(
        "Error codes that are transient, beside errors with `retryable: true`; `agent_failed` is any error without a code.",
      ),
  });

  const access = z.enum(["open", "token", "none"]).default("open");
  const comfyAccess = z
    .union([z.enum(["open", "token", "none"]), z.boolean()], {
      error: 'expected "open", "token" (or true) or "none" (or false)',
    })
    .transform((value) => (typeof value === "string" ? value : value ? "token" : "none"))
    .default("none");

  const web = z.strictObject({
    hooks_token: z
      .unknown()
      .optional()
      .describe("The token, or a list of them for rotation. Blank or anything else: every hook endpoint returns 503."),
    hooks_default_session_key: sessionKey
      .optional()
      .describe("Session of runs that do not name one. Absent: each has its own, and wakes share `hook:ingress`."),
    hooks_allow_request_session_key: flag(false, "Whether a request may name its session."),
    hooks_allowed_session_key_prefixes: z
      .array(sessionKey)
      .optional()
      .describe("A session key must have one of these prefixes. Absent or empty: any key is allowed."),
    hooks_heartbeat_seconds: countOrOff(0, "Interval of runs that take waiting events; 0: no such runs."),
    stream_auth: z
      .enum(["token", "signed", "none"])
      .default("token")
      .describe("What a client needs to read a stream: the token or a signed URL, a signed URL only, or nothing."),
    on_restart: z
      .enum(["interrupt", "requeue"])
      .default("interrupt")
      .describe(
        "What happens to runs that a restart interrupted, in a store of one process: they end as interrupted, or start again.",
      ),
    on_loss: z
      .enum(["requeue", "interrupt"])
      .default("requeue")
      .describe(
        "What happens to runs whose worker was lost, in PostgreSQL: they start again, once, or end as interrupted.",
      ),
    trust_proxy: flag(
      false,
      "Whether the last address of `X-Forwarded-For` is the client's. Only behind your own proxy.",
    ),
    incoming: incomingSchema()
      .default({})
      .describe("Senders that sign their requests instead of sending the token, by the name in `POST /hooks/in/NAME`."),
    webhooks: webhooksSchema().default({}).describe("Webhooks notified when runs end, keyed by name."),
    comfy_api: comfyAccess.describe(
      "Who may render their own graphs by the Comfy API v2 (`/api/v2`). `token` (or true): clients with the token. `open`: all clients, only on a loopback address. `none` (or false): the paths do not exist.",
    ),
    comfy_inputs: flag(
      false,
      "Whether jobs of the Comfy API v2 may have `inputs`, values for the parameters of their graph.",
    ),
    comfy_classic: comfyAccess.describe(
      "Who may render their own graphs by ComfyUI's classic API (`/prompt`, `/ws`); the same values.",
    ),
    retries: retries.default(() => retries.parse({})),
    public_url: z
      .url({ protocol: /^https?$/ })
      .transform(withoutSlashes)
      .optional()
      .describe("Public address of the service, used in webhooks and in `/api/v2`; absent: their addresses are paths."),
    allowed_origins: allowedOrigins()
      .default([])
      .describe(
        "Origins of pages that may call the service from a browser, such as `https://gallery.example.com`: hooks, the Comfy API and the classic one. If a token is needed, they need it too.",
      ),
    metrics: access.describe("Who may read `/metrics`; none: the path does not exist."),
    openapi: access.describe("Who may read `/openapi.json`; none: the path does not exist."),
  });

  const limits = z.strictObject({
    body_bytes: count(262144, "Size of a request body, after decompression."),
    group_body_bytes: count(4194304, "Size of the request of a group of runs, after decompression."),
    comfy_body_bytes: count(4194304, "Size of a job of the Comfy API."),
    upload_bytes: count(104857600, "Size of one upload of the Comfy API."),
    uploads_bytes: count(10737418240, "Bytes of all uploads that are kept."),
    message_chars: count(131072, "Length of a message or text."),
    header_seconds: count(
      10,
      "Time in which the headers of a request must arrive, and longest pause of its body, uploads included.",
    ),
    body_bytes_per_second: count(
      8192,
      "Bytes per second that a body must bring on average, after its first `header_seconds`.",
    ),
    failed_auth_per_minute: count(20, "Wrong tokens from one address in a minute, then 429."),
    starts_per_10s: count(1000, "Starts with one token in ten seconds."),
    session_starts_per_10s: count(200, "Starts in one session in ten seconds."),
    running: count(4, "Runs at the same time."),
    running_per_session: count(1, "Runs of one session at the same time."),
    queued: countOrOff(1000, "Waiting runs."),
    queued_per_session: countOrOff(100, "Waiting runs of one session."),
    pending_wakes: countOrOff(10000, "Events of all sessions that wait for a heartbeat."),
    pending_wakes_per_session: countOrOff(1000, "Events of one session that wait for a heartbeat."),
    pending_wake_bytes: count(67108864, "Bytes of the waiting events of all sessions."),
    pending_wake_bytes_per_session: count(4194304, "Bytes of the waiting events of one session."),
    run_seconds: count(600, "Longest run."),
    queue_seconds: count(3600, "Longest wait in the queue; then the run is expired."),
    delay_seconds: count(604800, "Longest delay of a run, and latest deadline."),
    streams: count(1000, "Open streams, and requests that wait for their run's end."),
    streams_per_run: count(20, "Open streams of one run, and requests that wait for its end."),
    wait_seconds: countOrOff(300, "Longest wait of a request that prefers its run's result; 0: no request waits."),
    streams_bytes: count(67108864, "Unsent bytes of all readers together."),
    slow_reader_bytes: count(1048576, "Unsent bytes of one reader."),
    slow_reader_seconds: count(30, "Time after which a client that reads nothing is disconnected."),
    retention_hours: count(24, "Time for which an ended run is kept."),
    retention_runs: count(10000, "Ended runs that are kept."),
    run_events: count(10000, "Events of one run that are kept."),
    run_bytes: count(16777216, "Bytes of the events of one run that are kept."),
    lease_seconds: z.int().min(3).max(10_000).default(15).describe("Time after which a silent worker loses its runs."),
    idempotency_hours: count(24, "Time for which an idempotency key is known."),
    webhook_hours: count(24, "Time for which the delivery of a webhook is tried."),
    webhook_seconds: z.int().min(1).max(300).default(15).describe("Longest request to a webhook."),
    webhook_requests: z.int().min(1).max(1000).default(4).describe("Requests to one webhook at the same time."),
    drain_seconds: countOrOff(30, "Time that runs have to finish when the service stops."),
  });

  return z.strictObject({
    host: nonEmpty
      .default("127.0.0.1")
      .describe("Address on which `serve` listens; any but a loopback address needs a token."),
    page: flag(true, "Whether `serve` shows its page at `/`."),
    page_delete: flag(
      false,
      "Whether the page may delete pictures of ended runs, with their files in `output_dir`; not with `files`.",
    ),
    port: z.int().min(0).max(65535).default(8188).describe("Port of `serve`; 0 takes a free one."),
    traces: flag(
      false,
      "Whether runs and their nodes are spans of OpenTelemetry; needs `@opentelemetry/api`, and an SDK that the process loads (`NODE_OPTIONS=--import=…`).",
    ),
    worker_port: z
      .int()
      .min(0)
      .max(65535)
      .optional()
      .describe("Port on which `worker` answers `/health`, `/ready` and `/metrics`; absent: it listens nowhere."),
    store: z
      .string()
      .regex(/^(memory:|sqlite:.+|postgres(ql)?:\/\/.+)$/, "expected memory:, sqlite:FILE or postgres://…")
      .default("sqlite:./latentkit.db")
      .describe(
        "Where the service keeps runs and events: `memory:`, `sqlite:FILE` or `postgres://USER:PASSWORD@HOST/DATABASE`.",
      ),
    files: z
      .string()
      .regex(/^s3:\/\/./, "expected s3://BUCKET/PREFIX")
      .optional()
      .describe(
        "Where the service keeps files of runs: `s3://BUCKET/PREFIX?endpoint=…&region=…&path_style=…`. Absent: below `output_dir`.",
      ),
    render: flag(true, "false: `serve` leaves the runs to the workers of a PostgreSQL store."),
    agent: z
      .union([graphAgent, z.strictObject({ module: path })], {
        error: "expected { graph: FILE }, { graphs: { NAME: FILE } } or { module: FILE }",
      })
      .optional()
      .describe(
        "The work of a run: a graph, graphs by their names, or a module whose default export is the agent. Absent: the example graph.",
      ),
    models: z
      .array(path)
      .default([])
      .describe(
        "ComfyUI's `models` folder with people's own checkpoints, several, or files `extra_model_paths.yaml`. Empty: the preview host.",
      ),
    models_device: z
      .enum(NETWORK_DEVICES, { error: `expected ${NETWORK_DEVICES.join(", ")}` })
      .optional()
      .describe(
        "Where the networks of `models` run: `cpu`, `auto` for the first backend of ONNX Runtime that computes correctly here and is faster than the CPU, or a backend by its name. Absent: a backend that `latentkit doctor` or `auto` has found good on this machine, else `cpu`.",
      ),
    models_memory: z
      .int()
      .positive()
      .max(MOST_MODELS_BYTES)
      .optional()
      .describe(
        "Bytes of memory for the weights of `models`; on a GPU, its own memory. Absent: as much as is free, and on a GPU as much as it takes.",
      ),
    allow_network: flag(true, "false refuses a graph in which a node reaches the network or uses a key."),
    output_dir: path.default("./out").describe("Folder of files that are written."),
    format: format
      .optional()
      .describe(
        "Format of saved pictures: `type` png, webp, jpeg or avif, `quality` 1 to 100, `lossless`, and `bit_depth` 8 or 16 of png.",
      ),
    parameters: flag(false, "Adds the line of settings that A1111 writes to pictures, as the text `parameters`."),
    device: z
      .string()
      .regex(/^(auto|cpu|cuda:\d{1,3})$/, "expected auto, cpu or cuda:N")
      .default("auto")
      .transform((choice) => choice as DeviceChoice)
      .describe("Where tensors are computed: `auto`, `cpu` or `cuda:N`."),
    remote_image_api: remoteImageApi.default(() => remoteImageApi.parse({})),
    channels: z.strictObject({ web: web.default(() => web.parse({})) }).default(() => ({ web: web.parse({}) })),
    limits: limits.default(() => limits.parse({})),
  });
});

export type Config = z.output<ReturnType<typeof configSchema>>;
/** A configuration before its defaults are filled in. */
export type ConfigInput = z.input<ReturnType<typeof configSchema>>;

function withoutSlashes(url: string): string {
  let end = url.length;
  while (url[end - 1] === "/") end--;
  return url.slice(0, end);
}

const MOST_ORIGINS = 100;

/** Schema of a list of origins, each as a browser sends it: in lower case, without the scheme's default port. */
function allowedOrigins() {
  const { z } = loadZod();
  const origin = z.string().transform((text, { addIssue }) => {
    const origin = originOf(text);
    if (origin === undefined) {
      addIssue("expected an origin, scheme://host or scheme://host:port, such as https://gallery.example.com");
      return z.NEVER;
    }
    return origin;
  });
  return z.array(origin).max(MOST_ORIGINS);
}

/** Undefined for anything but an origin. */
function originOf(text: string): string | undefined {
  const [, scheme, host] = /^([a-z][a-z0-9+.-]*):\/\/([^\s/?#@\\*,]+)$/i.exec(text) ?? [];
  if (scheme === undefined || host === undefined || !URL.canParse(text)) return undefined;
  const { origin } = new URL(text);
  // a scheme that only browsers know, such as that of their extensions
  return origin === "null" ? text.toLowerCase() : origin;
}
