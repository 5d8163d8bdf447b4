import type { z } from "zod";
import { loadZod } from "../../../base/lazy.js";
import { WEBHOOK_STATES } from "../../../render/config/webhooks.js";
import { RUN_ORIGINS, RUN_STATES } from "../run.js";
import { DELIVERY_STATES } from "../store/deliveries.js";

/** The bodies of responses. */
export function responseSchemas() {
  const { z } = loadZod();
  const named = <Shape extends z.ZodRawShape>(id: string, shape: Shape) => z.object(shape).meta({ id });
  const time = z.iso.datetime();
  const runId = z.uuid();
  const eventId = z.int().nonnegative();

  // the 200 of a started run
  const runPayload = named("RunPayload", {
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

  // the 202 of a group
  const groupPayload = named("GroupPayload", {
    ok: z.literal(true),
    group_id: z.uuid(),
    run_ids: z.array(runId).meta({ description: "In the order of the items." }),
    created_at: time,
    stream_url: z.string().meta({ description: "Server-Sent Events of the group; signed." }),
  });

  // the 200 of a queued wake
  const queueMetadata = named("QueueMetadata", {
    ok: z.literal(true),
    mode: z.literal("next-heartbeat"),
    queued: z.literal(true),
    session_key: z.string(),
    chat_id: z.int().meta({ description: "Row id of the session." }),
    event_id: z.int(),
    pending: z.int().meta({ description: "Pending system events of the session, this one included." }),
  });

  const run = named("Run", {
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

  const progress = z.object({ value: z.number(), max: z.number(), node: z.string().nullable() }).meta({
    description: "Steps of a node from its newest progress event or, with null as node, number of finished nodes.",
  });

  const file = z.object({
    name: z.string(),
    url: z.string(),
    content_type: z.string().nullable().meta({ description: "null: derived from the name." }),
  });

  // state of one run
  const runStatus = named("RunStatus", {
    ok: z.literal(true),
    ...run.shape,
    queue_position: z
      .int()
      .nullable()
      .meta({ description: "Position among all queued runs, 1 for the next; null where the run is not queued." }),
    progress: progress.nullable(),
    files: z.array(file).meta({ description: "Reported files, in order; the first 1,000." }),
    file_count: z.int().nonnegative().meta({ description: "Number of all reported files." }),
    response: z.string().nullable(),
  });

  const runList = named("RunList", {
    ok: z.literal(true),
    runs: z.array(run),
    next_cursor: z.string().nullable(),
  });

  const endedType = z.templateLiteral(["run.", z.enum(WEBHOOK_STATES)]);

  // body of a webhook
  const runEnded = named("RunEnded", {
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
      files: z.array(file).meta({ description: "The first 100." }),
      file_count: z.int().nonnegative(),
    }),
  });

  const deliveryItem = z.object({
    id: z.int().positive(),
    webhook: z.string().meta({ description: "Name of the webhook in the configuration." }),
    webhook_id: z.string().meta({ description: "Id of the message, as the receiver gets it." }),
    type: z.string(),
    run_id: runId,
    session_key: z.string(),
    created_at: time,
    state: z.enum(DELIVERY_STATES).meta({ description: "dead: given up." }),
    attempts: z
      .array(z.object({ at: time, ms: z.int(), status: z.int().nullable(), error: z.string().nullable() }))
      .meta({ description: "The last 20, oldest first." }),
  });

  const graphs = named("Graphs", {
    ok: z.literal(true),
    graphs: z
      .array(
        z.object({
          name: z.string(),
          default: z.boolean().meta({ description: "Requests that name none get it." }),
          schema: z.looseObject({}).meta({ description: "JSON Schema of the messages that it takes." }),
        }),
      )
      .meta({ description: "Empty where the agent has no graphs." }),
  });

  const queue = named("Queue", {
    ok: z.literal(true),
    paused: z.boolean().meta({ description: "No run starts; running ones go on." }),
    queued: z.int().nonnegative(),
    running: z.int().nonnegative(),
  });

  const error = named("Error", {
    ok: z.literal(false),
    error: z.string().meta({ description: "One sentence for a person." }),
    code: z.string().meta({ description: "For programs; stable." }),
    request_id: z.string().meta({ description: "Id of this request in the logs." }),
  });

  const problem = named("Problem", {
    type: z.literal("about:blank"),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    ...error.shape,
  });
  return {
    runPayload,
    groupPayload,
    queueMetadata,
    run,
    runStatus,
    runList,
    runEnded,
    delivery: named("Delivery", { ok: z.literal(true), delivery: deliveryItem }),
    deliveryList: named("DeliveryList", {
      ok: z.literal(true),
      deliveries: z.array(deliveryItem),
      next_cursor: z.string().nullable(),
    }),
    graphs,
    queue,
    error,
    problem,
    comfyError: named("ComfyError", {
      error: z.object({ code: z.string(), message: z.string(), details: z.looseObject({}) }),
    }),
    classicError: named("ClassicError", {
      error: z.object({
        type: z.string(),
        message: z.string(),
        details: z.string(),
        extra_info: z.looseObject({}),
      }),
      node_errors: z.looseObject({}),
    }),
  };
}

export type ResponseSchemas = ReturnType<typeof responseSchemas>;
/** Body of a response. */
export type Body<Name extends keyof ResponseSchemas> = z.output<ResponseSchemas[Name]>;
