import { freemem, totalmem } from "node:os";
import type { z } from "zod";
import { lazy, loadZod } from "../../../../base/lazy.js";
import { printJson } from "../../../../io/json/lossless.js";
import type { FileKind } from "../../../../nodes/inputs.js";
import { HookError } from "../../hook-error.js";
import type { Call, Handler, Route } from "../../http/call.js";
import { sendBytes, sendJson } from "../../http/responses.js";
import type { ClassicRoute, ComfyParts } from "../comfy-parts.js";

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
