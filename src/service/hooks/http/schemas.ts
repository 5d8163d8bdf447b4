import type { z } from "zod";
import { loadZod } from "../../../base/lazy-packages.js";
import { MAX_SESSION_KEY_CHARS } from "../../../render/config/session-key.js";
import { isTag, PRIORITY, TAG_FAULT, TAGS } from "../../../render/config/terms.js";
import { WEBHOOK_STATES } from "../../../render/config/webhooks.js";
import type { Limits } from "../hook-config.js";
import { HookError } from "../hook-error.js";
import { RUN_ORIGINS, RUN_STATES } from "../run.js";
import { maxRunSeconds, type Terms } from "../runs/terms.js";
import { DELIVERY_STATES } from "../store/deliveries.js";
import { IDEMPOTENCY_KEY } from "./idempotency-key.js";

const MAX_NAME_CHARS = 200;

/** Schemas of request bodies. Unknown fields are dropped. */
export function requestSchemas(limits: Limits) {
  const { z } = loadZod();
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
  const maxSeconds = maxRunSeconds(limits);
  const name = z
    .string("expected a string")
    .max(MAX_NAME_CHARS, `expected at most ${MAX_NAME_CHARS} characters`)
    .refine(isWellFormed, "lone surrogates are not text")
    .nullish()
    .meta({ description: "Name of the sender." });
  const common = {
    sessionKey,
    session_key: sessionKey.meta({ description: "Another spelling of sessionKey." }),
    idempotencyKey: z
      .string("expected a string")
      .regex(IDEMPOTENCY_KEY, "expected 1 to 255 visible ASCII characters")
      .nullish()
      .meta({ description: "Used where neither the header Idempotency-Key nor webhook-id is sent." }),
    timeoutSeconds: z
      .int("expected an integer")
      .min(1, "expected 1 or more")
      .max(maxSeconds, `expected at most ${maxSeconds}`)
      .nullish()
      .meta({ description: `Longest run time; default ${limits.run_seconds}.` }),
  };
  const { least, most } = PRIORITY;
  const { delay_seconds: longest } = limits;
  const seconds = (from: number) =>
    z
      .int("expected an integer")
      .min(from, `expected ${from} or more`)
      .max(longest, `expected at most ${longest}`)
      .nullish();
  const turn = {
    priority: z
      .int("expected an integer")
      .min(least, `expected ${least} or more`)
      .max(most, `expected at most ${most}`)
      .nullish()
      .meta({ description: "Runs of a higher priority start first; those of one session stay in order. Default: 0." }),
    delaySeconds: seconds(0).meta({
      description: "Time before which the run does not start. Later runs of its session wait too.",
    }),
    deadlineSeconds: seconds(1).meta({
      description: "Time from the request after which a run that has not ended is ended. Above delaySeconds.",
    }),
    tags: z
      .array(z.unknown().refine(isTag, TAG_FAULT).meta({ type: "string" }), "expected a list of texts")
      .max(TAGS.most, `expected at most ${TAGS.most}`)
      .nullish()
      .meta({ description: `Texts by which a list finds the run, of 1 to ${TAGS.chars} characters.` }),
  };
  return {
    agent: z.object({ message: prompt.meta({ description: "The prompt for the run." }), name, ...common, ...turn }),
    again: z.object({
      message: prompt.nullish().meta({ description: "Another prompt; absent: that of the earlier run." }),
      name,
      ...common,
      ...turn,
    }),
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

/** Terms in a body, absent ones without null. */
export function termsFrom(body: Nullable<Terms>): Terms {
  const { timeoutSeconds, priority, delaySeconds, deadlineSeconds, tags } = body;
  return {
    timeoutSeconds: timeoutSeconds ?? undefined,
    priority: priority ?? undefined,
    delaySeconds: delaySeconds ?? undefined,
    deadlineSeconds: deadlineSeconds ?? undefined,
    tags: tags ?? undefined,
  };
}

type Nullable<T> = { readonly [K in keyof T]: T[K] | null };

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

/** The bodies of responses. */
export function responseSchemas() {
  const { z } = loadZod();
  const time = z.iso.datetime();
  const runId = z.uuid();
  const eventId = z.int().nonnegative();

  // the 200 of a started run
  const runPayloadSchema = z.object({
    ok: z.literal(true),
    run_id: runId,
    status: z.literal("queued"),
    session_key: z.string(),
    created_at: time,
    stream_url: z
      .string()
      .meta({ description: "Server-Sent Events of the run; signed, so an EventSource can read it." }),
    status_url: z.string(),
  });

  // the 200 of a queued wake
  const queueMetadataSchema = z.object({
    ok: z.literal(true),
    mode: z.literal("next-heartbeat"),
    queued: z.literal(true),
    session_key: z.string(),
    chat_id: z.int().meta({ description: "Row id of the session." }),
    event_id: z.int(),
    pending: z.int().meta({ description: "Pending system events of the session, this one included." }),
  });

  const runSchema = z.object({
    run_id: runId,
    status: z.enum(RUN_STATES),
    done: z.boolean().meta({ description: "The status is final." }),
    session_key: z.string(),
    chat_id: z.int(),
    origin: z.enum(RUN_ORIGINS),
    name: z.string().nullable(),
    priority: z.int(),
    tags: z.array(z.string()),
    attempt: z.int().meta({ description: "Attempt that runs, ran last or comes next, from 1." }),
    due_at: time.nullable().meta({ description: "Time before which the run does not start; null: at once." }),
    deadline_at: time.nullable().meta({ description: "Time by which the run ends; null: none." }),
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
    description: "Steps of a node from its newest progress event or, with null as node, number of finished nodes.",
  });

  const fileSchema = z.object({
    name: z.string(),
    url: z.string(),
    content_type: z.string().nullable().meta({ description: "null: derived from the name." }),
  });

  // state of one run
  const runStatusSchema = z.object({
    ok: z.literal(true),
    ...runSchema.shape,
    queue_position: z
      .int()
      .nullable()
      .meta({ description: "Position among all queued runs, 1 for the next; null where the run is not queued." }),
    progress: progressSchema.nullable(),
    files: z.array(fileSchema).meta({ description: "Reported files, in order; the first 1,000." }),
    file_count: z.int().nonnegative().meta({ description: "Number of all reported files." }),
    response: z.string().nullable(),
  });

  const runListSchema = z.object({
    ok: z.literal(true),
    runs: z.array(runSchema),
    next_cursor: z.string().nullable(),
  });

  const endedType = z.templateLiteral(["run.", z.enum(WEBHOOK_STATES)]);

  // body of a webhook
  const runEndedSchema = z.object({
    type: endedType,
    timestamp: time.meta({ description: "End of the run." }),
    data: z.object({
      run_id: runId,
      status: z.enum(WEBHOOK_STATES),
      session_key: z.string(),
      name: z.string().nullable(),
      tags: z.array(z.string()),
      error_code: z.string().nullable(),
      status_url: z.string(),
      stream_url: z.string().meta({ description: "Signed, as the addresses of the files." }),
      files: z.array(fileSchema).meta({ description: "The first 100." }),
      file_count: z.int().nonnegative(),
    }),
  });

  const deliverySchema = z.object({
    id: z.int().positive(),
    webhook: z.string().meta({ description: "Name of the webhook in the configuration." }),
    webhook_id: z.string().meta({ description: "Id of the message, as the receiver gets it." }),
    type: z.string(),
    run_id: runId,
    session_key: z.string(),
    created_at: time,
    state: z.enum(DELIVERY_STATES).meta({ description: "dead: it is tried no more." }),
    attempts: z
      .array(z.object({ at: time, ms: z.int(), status: z.int().nullable(), error: z.string().nullable() }))
      .meta({ description: "The last 20, oldest first." }),
  });

  const probeSchema = z.object({ ok: z.literal(true), status: z.string() });

  const errorSchema = z.object({
    ok: z.literal(false),
    error: z.string().meta({ description: "One sentence for a person." }),
    code: z.string().meta({ description: "For programs; stable." }),
    request_id: z.string().meta({ description: "Id of this request in the logs." }),
  });

  const problemSchema = z.object({
    type: z.literal("about:blank"),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    ...errorSchema.shape,
  });
  return {
    runPayload: runPayloadSchema,
    queueMetadata: queueMetadataSchema,
    runStatus: runStatusSchema,
    runList: runListSchema,
    runEnded: runEndedSchema,
    delivery: z.object({ ok: z.literal(true), delivery: deliverySchema }),
    deliveryList: z.object({
      ok: z.literal(true),
      deliveries: z.array(deliverySchema),
      next_cursor: z.string().nullable(),
    }),
    probe: probeSchema,
    error: errorSchema,
    problem: problemSchema,
  };
}

export type ResponseSchemas = ReturnType<typeof responseSchemas>;
