import { STATUS_CODES } from "node:http";
import type { z } from "zod";
import { YieldTimer } from "../../../base/abort.js";
import { lazy, loadZod } from "../../../base/lazy.js";
import { BARE_TOKEN_HEADERS } from "../../log.js";
import { type HookErrorKind, refusalOf } from "../hook-error.js";
import type { Access, Answer, Fields, Route } from "./call.js";
import type { HookContext } from "./context.js";
import { type Door, sendBytes } from "./responses.js";

const API_VERSION = "1.0.0";
/** Most cached documents: a router that is mounted at a pattern has any number of mount paths. */
const MOST_MOUNT_PATHS = 8;
/** Schemes of the headers that may carry the token: any one is enough. */
const SCHEMES = {
  bearer: { type: "http", scheme: "bearer" },
  ...Object.fromEntries(BARE_TOKEN_HEADERS.map((name) => [name, { type: "apiKey", in: "header", name }])),
};
const TOKEN = Object.keys(SCHEMES).map((name) => ({ [name]: [] }));
const SECURITY: Readonly<Record<Access, readonly object[] | undefined>> = {
  open: undefined,
  sender: undefined,
  token: TOKEN,
  // or signed
  run: [...TOKEN, {}],
  asset: [...TOKEN, {}],
};
/** Refusals of every route that is not open, of all but hooks' open ones, of ComfyUI's APIs, and of every body. */
const OF_GATE = ["invalid_request", "unauthorized", "auth_rate_limited", "hooks_not_configured"] as const;
const OF_RUNS = ["store_unavailable"] as const;
const OF_GUARD = ["forbidden"] as const;
const OF_BODY = ["invalid_request", "request_timeout", "payload_too_large", "unsupported_media_type"] as const;

type Json = Readonly<Record<string, unknown>>;
type Schemas = Pick<HookContext["schemas"], "runEnded" | "error" | "problem" | "comfyError" | "classicError">;

/** The description of the routes beside it, and of itself; open to all unless configured otherwise. */
export function openApiRoute({ config, schemas }: HookContext, others: readonly Route[]): Route[] {
  const access = config.web.openapi;
  if (access === "none") return [];
  const openApi = lazy(async () => openApiBytes(await createOpenApi([...others, route], schemas)));
  const route: Route = {
    name: "openapi",
    paths: ["/openapi.json"],
    access,
    method: "GET",
    summary: "Describe the service: OpenAPI 3.1",
    responses: { 200: { json: loadZod().z.looseObject({}) } },
    async handle({ req, res }) {
      const bytesAt = await openApi();
      sendBytes(req, res, { status: 200, bytes: bytesAt(req.baseUrl || "/") });
    },
  };
  return [route];
}

/** Returns the document as JSON for a router mounted at `url`, cached by mount path. */
function openApiBytes(document: object): (url: string) => Buffer {
  const cache = new Map<string, Buffer>();
  return (url) => {
    const bytes = cache.get(url) ?? Buffer.from(JSON.stringify({ ...document, servers: [{ url }] }));
    if (cache.size < MOST_MOUNT_PATHS) cache.set(url, bytes);
    return bytes;
  };
}

// The server that the document names is the path that the router is mounted at.
// decisions: Endpoint, document and table are one object
/**
 * The routes as an OpenAPI 3.1 document, without servers: those of hooks and of ComfyUI's APIs, not the page's own. Each
 * route brings its description, so that none can be missing.
 */
async function createOpenApi(routes: readonly Route[], schemas: Schemas): Promise<Json> {
  const { z } = loadZod();
  const components: Record<string, unknown> = {};
  const text = z.string();
  const known = new Map<z.ZodType, Json>();
  const schemaOf = (schema: z.ZodType): Json => {
    const before = known.get(schema);
    if (before !== undefined) return before;
    const { $schema, $defs, ...rest } = z.toJSONSchema(schema, { io: "input", override: shorten });
    Object.assign(components, $defs);
    known.set(schema, rest);
    return rest;
  };
  const parametersOf = (place: "path" | "query" | "header", fields: Fields = {}) =>
    Object.entries(fields).map(([name, field]) => {
      const { description, ...schema } = schemaOf(field);
      return { name, in: place, required: !field.isOptional(), description, schema };
    });
  const contentOf = (schema: z.ZodType, types: string | readonly string[] = "application/json") =>
    Object.fromEntries([types].flat().map((type) => [type, { schema: schemaOf(schema) }]));
  const answerOf = ({ json, type, description }: Answer, status: number) => {
    const content = { ...(json && contentOf(json)), ...(type && contentOf(text, type)) };
    const isEmpty = Object.keys(content).length === 0;
    return { description: description ?? STATUS_CODES[status], ...(!isEmpty && { content }) };
  };
  const errors: Record<Door, Json> = {
    hooks: { ...contentOf(schemas.error), ...contentOf(schemas.problem, "application/problem+json") },
    comfy: contentOf(schemas.comfyError),
    classic: contentOf(schemas.classicError),
  };
  const operationOf = (route: Route, door: Door, path: string) => {
    const { name, operation = name, access = "token", summary, query, headers, body, responses } = route;
    const security = SECURITY[access];
    const names = [...path.matchAll(/:(\w+)/g)].map(([, name]) => [name!, text]);
    return {
      operationId: path === route.paths[0] ? operation : `${operation}_alias`,
      summary,
      ...(security && { security }),
      parameters: [
        ...parametersOf("path", Object.fromEntries(names)),
        ...parametersOf("query", query),
        ...parametersOf("header", headers),
      ],
      ...(body && { requestBody: { required: !body.isOptional, content: contentOf(body.schema, body.type) } }),
      responses: {
        ...Object.fromEntries(
          Object.entries(responses).map(([status, one]) => [status, answerOf(one, Number(status))]),
        ),
        ...refusalsOf(route, door, errors[door]),
      },
    };
  };
  const paths: Record<string, Record<string, unknown>> = {};
  const turns = new YieldTimer();
  for (const route of routes) {
    const { door = "hooks" } = route;
    if (door === "page") continue;
    // half a second for all of them: others are served in between
    if (turns.isDue) await turns.yield();
    for (const path of route.paths) {
      const at = path.replace(/:(\w+)/g, "{$1}");
      paths[at] = { ...paths[at], [route.method.toLowerCase()]: operationOf(route, door, path) };
    }
  }
  const document = {
    openapi: "3.1.0",
    info: {
      title: "latentkit hook service",
      version: API_VERSION,
      description: "Starts agent runs from webhooks, CI and cron, and streams their events.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    paths,
    webhooks: { runEnded: { post: webhook(contentOf(schemas.runEnded)) } },
    components: { securitySchemes: SCHEMES, schemas: components },
  };
  return JSON.parse(JSON.stringify(document).replaceAll('"#/$defs/', '"#/components/schemas/'));
}

/** Leaves out what a format or a type says already: patterns of hundreds of characters, and the bounds of a double. */
function shorten({ jsonSchema }: { jsonSchema: Record<string, unknown> }): void {
  if (jsonSchema.format !== undefined) delete jsonSchema.pattern;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
}

/** Refusals by status, with their codes and sentences. */
function refusalsOf({ access = "token", body, refusals = [] }: Route, door: Door, content: Json): Json {
  const isOpen = access === "open";
  const isHook = door === "hooks";
  const kinds = new Set<HookErrorKind>([
    ...(isOpen ? [] : OF_GATE),
    ...(isOpen && isHook ? [] : OF_RUNS),
    ...(isHook ? [] : OF_GUARD),
    ...(body ? OF_BODY : []),
    ...refusals,
  ]);
  const sentences = new Map<number, string[]>();
  for (const kind of kinds) {
    const refusal = refusalOf(kind);
    const { status, code } = (door === "comfy" ? refusal.comfy : undefined) ?? refusal;
    sentences.set(status, [...(sentences.get(status) ?? []), `${code}: ${refusal.sentence}`]);
  }
  return Object.fromEntries(
    [...sentences].map(([status, lines]) => [status, { description: lines.join("; "), content }]),
  );
}

const webhook = (content: Json) => ({
  operationId: "run_ended",
  summary: "Sent to each configured webhook at the end of a run, signed by Standard Webhooks",
  parameters: Object.entries({
    "webhook-id": "Run and state; the same each time the message is sent.",
    "webhook-timestamp": "Unix seconds of the attempt.",
    "webhook-signature": "Signatures v1 (HMAC) and v1a (ed25519), one for each secret.",
  }).map(([name, description]) => ({ name, in: "header", required: true, description, schema: { type: "string" } })),
  requestBody: { required: true, content },
  responses: {
    204: { description: "Delivered, as with any 2xx." },
    410: { description: "Nothing more is sent to this webhook." },
  },
});
