import type { z } from "zod";
import { loadZod } from "../../../../base/lazy.js";
import { isPlainObject } from "../../../../io/json/lossless.js";
import { HookError } from "../../hook-error.js";
import { arrivalLimits, decodeJson, readBodyBytes } from "../../http/body.js";
import type { Call, Handler } from "../../http/call.js";
import { hasBody } from "../../http/connection.js";
import type { HookContext } from "../../http/context.js";
import { sendBytes, sendJson } from "../../http/responses.js";
import type { ClassicRoute } from "../comfy-parts.js";
import { MOST_HISTORY, type Prompts } from "./prompts.js";

/** Most ids of one request. */
const MOST_IDS = 10_000;

/** The routes of the queue and the history. */
export function promptRoutes(context: HookContext, prompts: Prompts): ClassicRoute[] {
  const sendText = ({ req, res }: Call, text: string) => sendBytes(req, res, { status: 200, bytes: Buffer.from(text) });
  const done = ({ req, res }: Call) => sendJson(req, res, { status: 200, body: {} });

  /** Reads the body of a request that may have none. */
  const readFields = async ({ req, res }: Call): Promise<Record<string, unknown>> => {
    if (!hasBody(req)) return {};
    const { limits } = context.config;
    const bounds = { maxBytes: limits.body_bytes, ...arrivalLimits(limits, context.clock), takesAnyType: true };
    const text = decodeJson(await readBodyBytes(req, res, bounds));
    try {
      const body: unknown = JSON.parse(text);
      if (isPlainObject(body)) return body;
    } catch {
      // refused below
    }
    throw new HookError("invalid_request", "the body: expected a JSON object");
  };

  const changeQueue = async (call: Call) => {
    const body = await readFields(call);
    if (body.clear === true) await prompts.cancel("all", ["queued"]);
    await prompts.cancel(idsOf(body.delete), ["queued"]);
    done(call);
  };
  const changeHistory = async (call: Call) => {
    const body = await readFields(call);
    if (body.clear === true) await prompts.hide("all");
    await prompts.hide(idsOf(body.delete));
    done(call);
  };
  const interrupt = async (call: Call) => {
    const { prompt_id: id } = await readFields(call);
    if (id === undefined || id === null) await prompts.cancel("all", ["running"]);
    else await prompts.cancel(idsOf([id]), ["running", "queued"]);
    done(call);
  };

  const free = async (call: Call) => {
    await readFields(call);
    done(call);
  };

  const history = async (call: Call) => {
    const most = countOf(call.query, "max_items");
    const offset = countOf(call.query, "offset");
    sendText(call, await prompts.historiesText({ most: Math.min(most ?? MOST_HISTORY, MOST_HISTORY), offset }));
  };
  const oneHistory = async (call: Call) => {
    const id = call.params.id!;
    const text = await prompts.historyText(id);
    sendText(call, text === undefined ? "{}" : `{${JSON.stringify(id)}:${text}}`);
  };
  const queueLength = async ({ req, res }: Call) =>
    sendJson(req, res, { status: 200, body: { exec_info: { queue_remaining: await prompts.remaining() } } });

  const queue = async (call: Call) => sendText(call, await prompts.queueText());

  const { z } = loadZod();
  const any = z.looseObject({});
  const number = z.int().optional();
  const ids = z.array(z.string()).optional();
  const bodyOf = (schema: z.ZodType) => ({ body: { schema, isOptional: true } as const });
  const onePrompt = bodyOf(z.object({ prompt_id: z.string().optional() }));
  const change = bodyOf(z.object({ clear: z.boolean().optional(), delete: ids }));
  const route = (
    method: ClassicRoute["method"],
    path: string,
    summary: string,
    handle: Handler,
    more: Partial<ClassicRoute> = {},
  ): ClassicRoute => ({
    name: path.slice(1),
    method,
    path,
    summary,
    responses: { 200: { json: any } },
    handle,
    ...more,
  });
  return [
    route("GET", "/prompt", "Count the prompts that run and wait", queueLength),
    route("GET", "/queue", "List the prompts that run and wait", queue),
    route("POST", "/queue", "Cancel all prompts that wait, or some of them", changeQueue, {
      operation: "comfy_change_queue",
      ...change,
    }),
    route("POST", "/interrupt", "Cancel what runs, or one prompt", interrupt, onePrompt),
    route("GET", "/history", "List ended prompts, the newest 200 or `max_items` from `offset` on", history, {
      query: { max_items: number, offset: number },
    }),
    route("POST", "/history", "Hide entries of the history until the next start; their runs stay", changeHistory, {
      operation: "comfy_change_history",
      ...change,
    }),
    route("GET", "/history/:id", "Show an ended prompt", oneHistory, { name: "history_entry" }),
    route("POST", "/free", "Do nothing: memory is freed without being asked", free, bodyOf(any)),
  ];
}

function idsOf(value: unknown): readonly string[] {
  if (value === undefined || value === null) return [];
  const isList = Array.isArray(value) && value.length <= MOST_IDS && value.every((id) => typeof id === "string");
  if (isList) return value;
  throw new HookError("invalid_request", `expected a list of at most ${MOST_IDS} prompt ids`);
}

/** A count of the query; undefined where it is absent or negative. */
function countOf(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text.startsWith("-")) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new HookError("invalid_request", `${name}: expected a whole number`);
}
