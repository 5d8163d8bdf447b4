import { freemem, totalmem } from "node:os";
import type { z } from "zod";
import { describe } from "../../../../base/errors.js";
import { lazy, loadZod } from "../../../../base/lazy.js";
import { isPlainObject, printJson } from "../../../../io/json/lossless.js";
import type { FileKind } from "../../../../nodes/inputs.js";
import { HookError } from "../../hook-error.js";
import { arrivalLimits, decodeJson, readBodyBytes } from "../../http/body.js";
import type { Call, Handler, Route } from "../../http/call.js";
import { hasBody } from "../../http/connection.js";
import type { HookContext } from "../../http/context.js";
import { sendBytes, sendJson } from "../../http/responses.js";
import type { ClassicRoute, ComfyParts } from "../comfy-parts.js";
import { MOST_HISTORY, type Prompts } from "./prompts.js";

/** Version of ComfyUI whose API this is: clients choose by it what they send. */
const COMFYUI_VERSION = "0.3.60";

/** Kinds of model files, as ComfyUI names their folders. */
const KINDS = [
  "checkpoints",
  "loras",
  "vae",
  "controlnet",
  "upscale_models",
  "clip_vision",
  "ipadapter",
  "style_models",
  "gligen",
  "hypernetworks",
  "diffusion_models",
  "text_encoders",
] as const satisfies readonly FileKind[];

/** The routes that describe the service: its nodes, models and machine. */
export function infoRoutes({ graphs }: Pick<ComfyParts, "graphs">, features: object): ClassicRoute[] {
  const send = ({ req, res }: Call, body: unknown) => sendJson(req, res, { status: 200, body });
  const sendText = ({ req, res }: Call, text: string) => sendBytes(req, res, { status: 200, bytes: Buffer.from(text) });
  const refresh = async () => (await graphs.refresh?.()) ?? true;
  const describeAll = () =>
    Buffer.from(printJson(Object.fromEntries(graphs.classes().map((key) => [key, graphs.describe(key)]))));
  // hundreds of classes: encoded once
  const knownNodes = lazy(describeAll);
  const allNodes = async () => ((await refresh()) ? knownNodes() : describeAll());
  const nodes = async ({ req, res }: Call) => sendBytes(req, res, { status: 200, bytes: await allNodes() });
  const none = (call: Call) => send(call, []);
  const node = async (call: Call) => {
    await refresh();
    const key = call.params.class!;
    const description = graphs.describe(key);
    sendText(call, description === undefined ? "{}" : printJson({ [key]: description }));
  };
  const kinds = async (call: Call) => {
    await refresh();
    const known = KINDS.filter((kind) => graphs.models(kind));
    send(call, known);
  };
  const models = async (call: Call) => {
    await refresh();
    const kind = KINDS.find((name) => name === call.params.folder);
    const files = kind === undefined ? undefined : graphs.models(kind);
    if (files === undefined) throw new HookError("not_found", "no such folder of models");
    send(call, files);
  };
  const { z } = loadZod();
  const [object, names] = [z.looseObject({}), z.array(z.string())];
  const get = (
    name: string,
    path: string,
    summary: string,
    schema: z.ZodType,
    handle: Handler,
    refusals?: Route["refusals"],
  ): ClassicRoute => ({ name, path, method: "GET", summary, responses: { 200: { json: schema } }, refusals, handle });
  return [
    get("object_info", "/object_info", "Describe the nodes with their inputs", object, nodes),
    get("object_info_class", "/object_info/:class", "Describe one node", object, node),
    get("system_stats", "/system_stats", "Describe the machine", object, (call) => send(call, systemStats())),
    get("features", "/features", "List what a client may use", object, (call) => send(call, features)),
    get("models", "/models", "List the kinds of model files", names, kinds),
    get("models_folder", "/models/:folder", "List the model files of a kind", names, models, ["not_found"]),
    // hosts list no embeddings, and there are no scripts for the editor
    get("embeddings", "/embeddings", "List embeddings: none", names, none),
    get("extensions", "/extensions", "List scripts of the editor: none", names, none),
  ];
}

function systemStats(): object {
  const [total, free] = [totalmem(), freemem()];
  return {
    system: {
      os: process.platform === "win32" ? "nt" : "posix",
      ram_total: total,
      ram_free: free,
      comfyui_version: COMFYUI_VERSION,
      // none runs here; clients expect texts
      python_version: "none",
      pytorch_version: "none",
      embedded_python: false,
      argv: [],
    },
    devices: [
      {
        name: "cpu",
        type: "cpu",
        index: null,
        vram_total: total,
        vram_free: free,
        torch_vram_total: total,
        torch_vram_free: free,
      },
    ],
  };
}

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
    const ids = idsOf(body.delete);
    if (flagOf(body, "clear")) await prompts.cancel("all", ["queued"]);
    await prompts.cancel(ids, ["queued"]);
    done(call);
  };
  const changeHistory = async (call: Call) => {
    const body = await readFields(call);
    const ids = idsOf(body.delete);
    if (flagOf(body, "clear")) await prompts.hide("all");
    await prompts.hide(ids);
    done(call);
  };
  const interrupt = async (call: Call) => {
    const { prompt_id: id } = await readFields(call);
    if (id === undefined || id === null) await prompts.cancel("all", ["running"]);
    else if (typeof id === "string") await prompts.cancel([id], ["running", "queued"]);
    else throw new HookError("invalid_request", "prompt_id: expected a text");
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
  throw new HookError("invalid_request", `delete: expected a list of at most ${MOST_IDS} prompt ids`);
}

/** A field that is true or false, for which Python takes 1 and 0 too. Any other value could be meant as either. */
export function flagOf(body: Readonly<Record<string, unknown>>, name: string): boolean {
  const value = body[name] ?? false;
  if (value === true || value === 1) return true;
  if (value === false || value === 0) return false;
  throw new HookError("invalid_request", `${name}: expected true or false, received ${describe(value)}`);
}

/** A count of the query; undefined where it is absent or negative. */
function countOf(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text.startsWith("-")) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new HookError("invalid_request", `${name}: expected a whole number`);
}
