import { freemem, totalmem } from "node:os";
import { lazy } from "../../../../base/lazy-packages.js";
import { printJson } from "../../../../io/json/lossless.js";
import type { FileKind } from "../../../../nodes/inputs.js";
import { HookError } from "../../hook-error.js";
import type { Call } from "../../http/call.js";
import { sendBytes, sendJson } from "../../http/responses.js";
import type { ComfyParts } from "../comfy-parts.js";
import type { ClassicRoute } from "./classic-route.js";

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
  "style_models",
  "gligen",
  "hypernetworks",
  "diffusion_models",
  "text_encoders",
] as const satisfies readonly FileKind[];

/** The routes that describe the service: its nodes, models and machine. */
export function infoRoutes({ graphs }: Pick<ComfyParts, "graphs">, features: object): ClassicRoute[] {
  const json =
    (read: () => unknown) =>
    ({ req, res }: Call) =>
      sendJson(req, res, { status: 200, body: read() });
  const sendText = ({ req, res }: Call, text: string) => sendBytes(req, res, { status: 200, bytes: Buffer.from(text) });
  const refresh = async () => (await graphs.refresh?.()) ?? true;
  const describeAll = () =>
    Buffer.from(printJson(Object.fromEntries(graphs.classes().map((key) => [key, graphs.describe(key)]))));
  // hundreds of classes: encoded once
  const knownNodes = lazy(describeAll);
  const allNodes = async () => ((await refresh()) ? knownNodes() : describeAll());
  const node = async (call: Call) => {
    await refresh();
    const key = call.params.class!;
    const description = graphs.describe(key);
    sendText(call, description === undefined ? "{}" : printJson({ [key]: description }));
  };
  const kinds = async ({ req, res }: Call) => {
    await refresh();
    sendJson(req, res, { status: 200, body: KINDS.filter((kind) => graphs.models(kind)) });
  };
  const models = async ({ req, res, params }: Call) => {
    await refresh();
    const kind = KINDS.find((name) => name === params.folder);
    const files = kind === undefined ? undefined : graphs.models(kind);
    if (files === undefined) throw new HookError("not_found", "no such folder of models");
    sendJson(req, res, { status: 200, body: files });
  };
  return [
    {
      name: "object_info",
      path: "/object_info",
      handlers: { GET: async ({ req, res }) => sendBytes(req, res, { status: 200, bytes: await allNodes() }) },
    },
    { name: "object_info_class", path: "/object_info/:class", handlers: { GET: node } },
    { name: "system_stats", path: "/system_stats", handlers: { GET: json(systemStats) } },
    { name: "features", path: "/features", handlers: { GET: json(() => features) } },
    { name: "models", path: "/models", handlers: { GET: kinds } },
    { name: "models_folder", path: "/models/:folder", handlers: { GET: models } },
    // hosts list no embeddings, and there are no scripts for the editor
    { name: "embeddings", path: "/embeddings", handlers: { GET: json(() => []) } },
    { name: "extensions", path: "/extensions", handlers: { GET: json(() => []) } },
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
