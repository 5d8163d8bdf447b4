import type { OpenAPIRegistry, OpenApiGeneratorV31, RouteConfig } from "@asteasolutions/zod-to-openapi";
import type { z } from "zod";
import { loadZod, loadZodToOpenApi } from "../../../base/lazy-packages.js";
import { BARE_TOKEN_HEADERS } from "../../token-headers.js";
import type { HookConfig, Limits } from "../hook-config.js";
import { REFUSALS } from "../hook-error.js";
import { RUN_STATES } from "../run.js";
import { registerWebhookPaths } from "./openapi-webhooks.js";
import { responseSchemas } from "./response-schemas.js";
import { mostItems, requestSchemas } from "./schemas.js";

const API_VERSION = "1.0.0";

type Document = ReturnType<OpenApiGeneratorV31["generateDocument"]>;
type Responses = RouteConfig["responses"];
type Access = NonNullable<RouteConfig["security"]>;

// decision 155
/** The HTTP interface as an OpenAPI 3.1 document, made from the schemas that check the requests. */
export function createOpenApi(
  limits: Limits,
  { metrics, openapi, incoming }: Pick<HookConfig["web"], "metrics" | "openapi" | "incoming">,
): Omit<Document, "servers"> {
  const { z } = loadZod();
  const generator = loadZodToOpenApi();
  const registry = new generator.OpenAPIRegistry();
  const bodies = requestSchemas(limits);
  const responses = responseSchemas();
  const schemas = {
    agentRequest: bodies.agent.meta({ id: "AgentRequest" }),
    againRequest: bodies.again.meta({ id: "AgainRequest" }),
    wakeRequest: bodies.wake.meta({ id: "WakeRequest" }),
    groupRequest: bodies.group
      .extend({
        items: z
          .array(bodies.groupItem.meta({ id: "GroupItem" }))
          .min(1)
          .max(mostItems(limits)),
      })
      .meta({ id: "GroupRequest" }),
    groupPayload: responses.groupPayload.meta({ id: "GroupPayload" }),
    runPayload: responses.runPayload.meta({ id: "RunPayload" }),
    queueMetadata: responses.queueMetadata.meta({ id: "QueueMetadata" }),
    runStatus: responses.runStatus.meta({ id: "RunStatus" }),
    runList: responses.runList.meta({ id: "RunList" }),
    runEnded: responses.runEnded.meta({ id: "RunEnded" }),
    delivery: responses.delivery.meta({ id: "Delivery" }),
    deliveryList: responses.deliveryList.meta({ id: "DeliveryList" }),
    graphs: responses.graphs.meta({ id: "Graphs" }),
    queue: responses.queue.meta({ id: "Queue" }),
    probe: responses.probe.meta({ id: "Probe" }),
    error: responses.error.meta({ id: "Error" }),
    problem: responses.problem.meta({ id: "Problem" }),
  };
  const token = registerSecurity(registry);
  const json = (description: string, schema: z.ZodType): Responses => ({
    200: { description, content: { "application/json": { schema } } },
  });
  const content = {
    "application/json": { schema: schemas.error },
    "application/problem+json": { schema: schemas.problem },
  };
  const refusals = (...statuses: number[]): Responses =>
    Object.fromEntries(statuses.map((status) => [status, { description: sentencesOf(status), content }]));
  const runId = z.uuid().meta({ description: "Id of the run." });
  const page = {
    cursor: z.string().optional().meta({ description: "next_cursor of the previous page." }),
    limit: z.int().min(1).optional().meta({ description: "Default 50, at most 200." }),
  };
  const signature = {
    expires: z.int().optional().meta({ description: "Part of a signed URL." }),
    signature: z.string().optional().meta({ description: "Part of a signed URL." }),
  };

  const waitHeaders = {
    Prefer: z
      .string()
      .optional()
      .meta({ description: `wait=SECONDS: respond when the run has ended; ${limits.wait_seconds} at most.` }),
    Accept: z.string().optional().meta({ description: "With wait, image/*: respond with the run's first picture." }),
  };
  const keyHeader = {
    "Idempotency-Key": z
      .string()
      .optional()
      .meta({ description: "A repeated request with the same key gets the first one's response." }),
  };
  /** Responses of a start, which may wait for its end. */
  const starts = (description: string, ...others: z.ZodType[]): Responses => ({
    200: {
      description: `${description} With wait: the run has succeeded.`,
      content: {
        "application/json": { schema: z.union([schemas.runPayload, schemas.runStatus, ...others]) },
        "image/*": { schema: z.string() },
      },
    },
    202: {
      description: "With wait: the run goes on.",
      content: { "application/json": { schema: schemas.runPayload } },
    },
    ...refusals(400, 401, 408, 409, 413, 415, 422, 429, 500, 503, 504),
  });

  for (const [name, body, responses] of [
    ["agent", schemas.agentRequest, starts("The run is accepted.")],
    ["wake", schemas.wakeRequest, starts("A run is accepted, or the text is queued.", schemas.queueMetadata)],
  ] as const) {
    for (const path of [`/hooks/${name}`, `/api/hooks/${name}`]) {
      registry.registerPath({
        method: "post",
        path,
        operationId: path === `/hooks/${name}` ? name : `${name}Alias`,
        summary: name === "agent" ? "Start an asynchronous run" : "Start a run, or queue a system event",
        security: token,
        request: {
          headers: z.object({ ...keyHeader, ...waitHeaders }),
          body: { required: true, content: { "application/json": { schema: body } } },
        },
        responses,
      });
    }
  }
  for (const path of ["/hooks/group", "/api/hooks/group"]) {
    registry.registerPath({
      method: "post",
      path,
      operationId: path === "/hooks/group" ? "group" : "groupAlias",
      summary: "Start up to 1,000 runs with one stream, all or none",
      security: token,
      request: {
        headers: z.object(keyHeader),
        body: { required: true, content: { "application/json": { schema: schemas.groupRequest } } },
      },
      responses: {
        202: {
          description: "The runs are accepted.",
          content: { "application/json": { schema: schemas.groupPayload } },
        },
        ...refusals(400, 401, 408, 413, 415, 422, 429, 503),
      },
    });
  }
  for (const [name, { signature }] of Object.entries(incoming)) {
    for (const path of [`/hooks/in/${name}`, `/api/hooks/in/${name}`]) {
      registry.registerPath({
        method: "post",
        path,
        operationId: path === `/hooks/in/${name}` ? `in-${name}` : `in-${name}Alias`,
        summary: `Start a run from a delivery that is signed (${signature})`,
        request: {
          headers: z.object(waitHeaders),
          body: {
            required: true,
            content: {
              "application/json": { schema: z.looseObject({}) },
              "application/x-www-form-urlencoded": { schema: z.looseObject({}) },
            },
          },
        },
        responses: starts("The run is accepted, or a trial request answered.", z.looseObject({})),
      });
    }
  }
  const get = (path: string, operationId: string, summary: string, route: Partial<RouteConfig>) =>
    registry.registerPath({ method: "get", path, operationId, summary, responses: {}, ...route });
  const post = (path: string, operationId: string, summary: string, route: Partial<RouteConfig>) =>
    registry.registerPath({ method: "post", path, operationId, summary, responses: {}, ...route });
  get("/api/graphs", "graphs", "Graphs that a request can name, with the schemas of their messages", {
    security: token,
    responses: { ...json("The graphs.", schemas.graphs), ...refusals(400, 401, 429, 503) },
  });
  const cursor = {
    last_event_id: z.int().optional().meta({ description: "Events after this id; absent or -1: all." }),
    ...signature,
  };
  const stream = (what: string, description: string): Partial<RouteConfig> & { request: object } => ({
    security: [...token, {}],
    request: {
      headers: z.object({
        "Last-Event-ID": z
          .string()
          .optional()
          .meta({ description: `Takes precedence over last_event_id; 204 at the end of an ended ${what}.` }),
      }),
    },
    responses: {
      200: { description, content: { "text/event-stream": { schema: z.string() } } },
      204: { description: `The ${what} has ended and the reader has all its events.` },
      ...refusals(400, 401, 404, 429, 503),
    },
  });
  const ofRun = stream("run", "First replay_meta, then events with ids from 1; the last is done, error or aborted.");
  get("/api/stream", "stream", "Server-Sent Events of one run, from any id", {
    ...ofRun,
    request: { ...ofRun.request, query: z.object({ run_id: runId, ...cursor }) },
  });
  const ofGroup = stream("group", "First replay_meta, then an item event for each run that ends; the last is done.");
  get("/api/groups/{id}/stream", "groupStream", "Server-Sent Events of a group, from any id", {
    ...ofGroup,
    request: { ...ofGroup.request, params: z.object({ id: z.uuid() }), query: z.object(cursor) },
  });
  const status = {
    security: token,
    responses: { ...json("The run.", schemas.runStatus), ...refusals(400, 401, 404, 429, 503) },
  };
  get("/api/run_status", "runStatus", "State of one run", {
    ...status,
    request: { query: z.object({ run_id: runId }) },
  });
  get("/api/runs/{id}", "run", "State of one run", { ...status, request: { params: z.object({ id: runId }) } });
  get("/api/runs", "runs", "Runs, newest first", {
    security: token,
    request: {
      query: z.object({
        ...page,
        state: z.enum(RUN_STATES).optional().meta({ description: "Only runs in this state." }),
        session_key: z.string().optional().meta({ description: "Only runs of this session." }),
        tag: z.string().optional().meta({ description: "Only runs with this tag." }),
      }),
    },
    responses: { ...json("One page.", schemas.runList), ...refusals(400, 401, 429, 503) },
  });
  const queue = {
    security: token,
    responses: { ...json("The queue.", schemas.queue), ...refusals(400, 401, 429, 503) },
  };
  get("/api/queue", "queue", "Numbers of queued and running runs, and whether runs start", queue);
  post("/api/queue/pause", "pause", "Let no run start, also after a restart; running runs go on", queue);
  post("/api/queue/resume", "resume", "Let runs start again", queue);
  post("/api/runs/{id}/cancel", "cancel", "Cancel a run; an ended one stays as it is", {
    ...status,
    request: { params: z.object({ id: runId }) },
  });
  post("/api/runs/{id}/again", "again", "Start a run with the message of another one, or a changed one", {
    security: token,
    request: {
      params: z.object({ id: runId }),
      headers: z.object({ ...keyHeader, ...waitHeaders }),
      body: { content: { "application/json": { schema: schemas.againRequest } } },
    },
    responses: { ...starts("The run is accepted."), ...refusals(404) },
  });
  get("/api/runs/{id}/files/{name}", "file", "A file that the run reported", {
    security: [...token, {}],
    request: { params: z.object({ id: runId, name: z.string() }), query: z.object(signature) },
    responses: {
      200: { description: "The file.", content: { "application/octet-stream": { schema: z.string() } } },
      ...refusals(401, 404, 429, 503),
    },
  });
  registerWebhookPaths(registry, { token, runId, page, schemas, json, refusals });
  get("/health", "health", "Whether the process is alive", { responses: json("It is.", schemas.probe) });
  get("/ready", "ready", "Whether runs can be started", {
    responses: { ...json("They can.", schemas.probe), ...refusals(503) },
  });
  const guarded = (access: typeof metrics, responses: Responses): Partial<RouteConfig> =>
    access === "token" ? { security: token, responses: { ...responses, ...refusals(401, 429, 503) } } : { responses };
  if (metrics !== "none") {
    const text = { 200: { description: "Metrics.", content: { "text/plain": { schema: z.string() } } } };
    get("/metrics", "metrics", "Prometheus metrics", guarded(metrics, text));
  }
  if (openapi !== "none") {
    const document = json("OpenAPI 3.1.", z.looseObject({}));
    get("/openapi.json", "openapi", "This document", guarded(openapi, document));
  }
  return new generator.OpenApiGeneratorV31(registry.definitions).generateDocument({
    openapi: "3.1.0",
    info: {
      title: "latentkit hook service",
      version: API_VERSION,
      description: "Starts agent runs from webhooks, CI and cron, and streams their events.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
  });
}

/** Registers the headers that may carry the token: any one is enough. */
function registerSecurity(registry: OpenAPIRegistry): Access {
  registry.registerComponent("securitySchemes", "bearer", { type: "http", scheme: "bearer" });
  for (const name of BARE_TOKEN_HEADERS) {
    registry.registerComponent("securitySchemes", name, { type: "apiKey", in: "header", name });
  }
  return ["bearer", ...BARE_TOKEN_HEADERS].map((name) => ({ [name]: [] }));
}

/** Codes and sentences of a status, from the one table of refusals. */
const sentencesOf = (status: number): string =>
  Object.values(REFUSALS)
    .filter((refusal) => refusal.status === status)
    .map(({ code, sentence }) => `${code}: ${sentence}`)
    .join("; ");
