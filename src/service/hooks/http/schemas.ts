import { z } from "zod";
import { MAX_SESSION_KEY_CHARS } from "../../../render/session-key.js";
import { HookError } from "../hook-error.js";
import { type Limits, RUN_STATES } from "../types.js";
import { IDEMPOTENCY_KEY } from "./idempotency-key.js";

const MAX_TIMEOUT_SECONDS = 3600;
const MAX_NAME_CHARS = 200;

/** The longest run a request may ask for; a configuration that allows more by default allows it here too. */
export const maxTimeoutSeconds = (limits: Limits): number => Math.max(MAX_TIMEOUT_SECONDS, limits.run_seconds);

/** The bodies of requests. Fields they do not name are dropped. */
export function requestSchemas(limits: Limits) {
  const prompt = z
    .string({ error: (issue) => (issue.input === undefined ? "is required" : "expected a string") })
    .max(limits.message_chars, `expected at most ${limits.message_chars} characters`)
    .refine((text) => text.trim() !== "", "expected more than blanks")
    .refine(isWellFormed, "lone surrogates are not text");
  const sessionKey = z
    .string("expected a string")
    .nullish()
    .meta({
      description: `Session to run in, where the configuration lets requests choose. At most ${MAX_SESSION_KEY_CHARS} characters, no control characters.`,
    });
  const maxSeconds = maxTimeoutSeconds(limits);
  const name = z
    .string("expected a string")
    .max(MAX_NAME_CHARS, `expected at most ${MAX_NAME_CHARS} characters`)
    .refine(isWellFormed, "lone surrogates are not text")
    .nullish()
    .meta({ description: "Sender fallback." });
  const common = {
    sessionKey,
    session_key: sessionKey.meta({ description: "Another spelling of sessionKey." }),
    idempotencyKey: z
      .string("expected a string")
      .regex(IDEMPOTENCY_KEY, "expected 1 to 255 visible ASCII characters")
      .nullish()
      .meta({ description: "Used where neither header Idempotency-Key nor webhook-id is sent." }),
    timeoutSeconds: z
      .int("expected an integer")
      .min(1, "expected 1 or more")
      .max(maxSeconds, `expected at most ${maxSeconds}`)
      .nullish()
      .meta({ description: `Run time at most; default ${limits.run_seconds}.` }),
  };
  return {
    agent: z.object({ message: prompt.meta({ description: "The prompt for the run." }), name, ...common }),
    wake: z.object({
      text: prompt.meta({ description: "The wake text." }),
      mode: z
        .enum(["now", "next-heartbeat"], "expected now or next-heartbeat")
        .nullish()
        .meta({ description: "now (default): start a run. next-heartbeat: queue a system event for the next one." }),
      ...common,
    }),
  };
}

export type RequestSchemas = ReturnType<typeof requestSchemas>;

/** Checks a body. Fails with invalid_request, naming the field and what was expected, never the value. */
export function parseBody<T extends z.ZodType>(schema: T, body: unknown): z.output<T> {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const { path, message } = parsed.error.issues[0]!;
  const isWhole = path.length === 0;
  throw new HookError("invalid_request", isWhole ? "expected a JSON object" : `${path.join(".")}: ${message}`);
}

// lib es2023 has no String.isWellFormed
const isWellFormed = (text: string) => !/\p{Cs}/u.test(text);

const time = z.iso.datetime();
const runId = z.uuid();
const eventId = z.int().nonnegative();

/** The 200 of a started run. */
export const runPayloadSchema = z.object({
  ok: z.literal(true),
  run_id: runId,
  status: z.literal("queued"),
  session_key: z.string(),
  created_at: time,
  stream_url: z.string().meta({ description: "Server-Sent Events of the run; signed, so an EventSource can read it." }),
  status_url: z.string(),
});

/** The 200 of a queued wake. */
export const queueMetadataSchema = z.object({
  ok: z.literal(true),
  mode: z.literal("next-heartbeat"),
  queued: z.literal(true),
  session_key: z.string(),
  chat_id: z.int().meta({ description: "Row id of the session." }),
  event_id: z.int(),
  pending: z.int().meta({ description: "System events of the session that wait, this one included." }),
});

const runSchema = z.object({
  run_id: runId,
  status: z.enum(RUN_STATES),
  done: z.boolean().meta({ description: "The status is final." }),
  session_key: z.string(),
  chat_id: z.int(),
  origin: z.enum(["agent", "wake", "heartbeat"]),
  name: z.string().nullable(),
  created_at: time,
  started_at: time.nullable(),
  finished_at: time.nullable(),
  timeout_seconds: z.int(),
  oldest_event_id: eventId,
  last_event_id: eventId,
  error: z.string().nullable(),
  error_code: z.string().nullable(),
});

const progressSchema = z.object({ value: z.number(), max: z.number(), node: z.string().nullable() }).meta({
  description: "Steps of a node as its newest progress event tells them, or, with null as node, nodes that are done.",
});

const fileSchema = z.object({
  name: z.string(),
  url: z.string(),
  content_type: z.string().nullable().meta({ description: "null: told from the name." }),
});

/** State of one run. */
export const runStatusSchema = z.object({
  ok: z.literal(true),
  ...runSchema.shape,
  queue_position: z
    .int()
    .nullable()
    .meta({ description: "Place among all queued runs, 1 for the next; null where the run is not queued." }),
  progress: progressSchema.nullable(),
  files: z.array(fileSchema).meta({ description: "What the run reported, in order; the first 1,000." }),
  file_count: z.int().nonnegative().meta({ description: "All reported files." }),
  response: z.string().nullable(),
});

export const runListSchema = z.object({
  ok: z.literal(true),
  runs: z.array(runSchema),
  next_cursor: z.string().nullable(),
});

export const probeSchema = z.object({ ok: z.literal(true), status: z.string() });

export const errorSchema = z.object({
  ok: z.literal(false),
  error: z.string().meta({ description: "One sentence for a person." }),
  code: z.string().meta({ description: "For programs; stable." }),
  request_id: z.string().meta({ description: "Names this request in the logs." }),
});

export const problemSchema = z.object({
  type: z.literal("about:blank"),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  ...errorSchema.shape,
});
