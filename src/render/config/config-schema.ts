import type { z } from "zod";
import { lazy, loadZod } from "../../base/lazy.js";
import { MOST_MODELS_BYTES, NETWORK_DEVICES } from "../../host/checkpoint/session/options.js";
import { FORMAT, PICTURE_TYPES, type PictureFormat } from "../../io/pictures/format.js";
import type { DeviceChoice } from "../../tensor/device/device.js";
import { webSchema } from "./web-schema.js";

/** Longest time of a limit. */
const CENTURY_HOURS = 876_000;

/** The whole configuration of the command line and the service; every key has its default and its meaning here. @internal */
export const configSchema = lazy(() => {
  const { z } = loadZod();
  const count = (value: number, meaning: string) => z.int().positive().default(value).describe(meaning);
  const countOrOff = (value: number, meaning: string) => z.int().nonnegative().default(value).describe(meaning);
  // the ends of times that begin now are dates, which end with the year 275760, and are signed
  const hours = (value: number, meaning: string) =>
    z.int().positive().max(CENTURY_HOURS).default(value).describe(meaning);
  const mostSeconds = z.int().max(CENTURY_HOURS * 3600);
  const seconds = (value: number, meaning: string) => mostSeconds.positive().default(value).describe(meaning);
  const secondsOrOff = (value: number, meaning: string) => mostSeconds.nonnegative().default(value).describe(meaning);
  const flag = (value: boolean, meaning: string) => z.boolean().default(value).describe(meaning);
  const nonEmpty = z.string().min(1);
  const path = nonEmpty;

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

  const web = webSchema();

  const limits = z.strictObject({
    body_bytes: count(262144, "Size of a request body, after decompression."),
    group_body_bytes: count(4194304, "Size of the request of a group of runs, after decompression."),
    comfy_body_bytes: count(4194304, "Size of a job of the Comfy API."),
    upload_bytes: count(104857600, "Size of one upload of the Comfy API."),
    uploads_bytes: count(10737418240, "Bytes of all uploads that are kept."),
    message_chars: count(131072, "Length of a message or text."),
    header_seconds: seconds(
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
    run_seconds: seconds(600, "Longest run."),
    queue_seconds: seconds(3600, "Longest wait in the queue; then the run is expired."),
    delay_seconds: seconds(604800, "Longest delay of a run, and latest deadline."),
    streams: count(1000, "Open streams, and requests that wait for their run's end."),
    streams_per_run: count(20, "Open streams of one run, and requests that wait for its end."),
    wait_seconds: secondsOrOff(300, "Longest wait of a request that prefers its run's result; 0: no request waits."),
    streams_bytes: count(67108864, "Unsent bytes of all readers together."),
    slow_reader_bytes: count(1048576, "Unsent bytes of one reader."),
    slow_reader_seconds: seconds(30, "Time after which a client that reads nothing is disconnected."),
    retention_hours: hours(24, "Time for which an ended run is kept."),
    retention_runs: count(10000, "Ended runs that are kept."),
    run_events: count(10000, "Events of one run that are kept."),
    run_bytes: count(16777216, "Bytes of the events of one run that are kept."),
    lease_seconds: z.int().min(3).max(10_000).default(15).describe("Time after which a silent worker loses its runs."),
    idempotency_hours: hours(24, "Time for which an idempotency key is known."),
    webhook_hours: hours(24, "Time for which the delivery of a webhook is tried."),
    webhook_seconds: z.int().min(1).max(300).default(15).describe("Longest request to a webhook."),
    webhook_requests: z.int().min(1).max(1000).default(4).describe("Requests to one webhook at the same time."),
    drain_seconds: secondsOrOff(30, "Time that runs have to finish when the service stops."),
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
