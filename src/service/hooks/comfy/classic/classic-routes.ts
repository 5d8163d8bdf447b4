import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { Handler, Route } from "../../http/call.js";
import type { HookContext } from "../../http/context.js";
import type { ComfyParts } from "../comfy-parts.js";
import type { ClassicRoute } from "./classic-route.js";
import { infoRoutes } from "./info-routes.js";
import { InputNames } from "./input-names.js";
import { refuseForeign } from "./origin-guard.js";
import { createPictures } from "./pictures/pictures.js";
import { promptRoutes } from "./prompt-routes.js";
import { Prompts } from "./prompts.js";
import { Publisher } from "./publisher.js";
import { Sockets } from "./sockets.js";
import { submitRoute } from "./submit-prompt.js";
import { uploadRoutes } from "./upload-routes.js";
import { viewRoute } from "./view-route.js";

/** ComfyUI's classic API: its routes, and its WebSocket. */
export interface ClassicApi {
  readonly routes: readonly Route[];
  /** Opens a WebSocket on `/ws`, or refuses it. */
  upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Shows the client of a prompt a picture of the moment, a PNG file. */
  preview(runId: string, png: Uint8Array, node?: string): void;
  /** Closes the WebSockets, and ends work on pictures. */
  close(): void;
}

// decision 311
/** ComfyUI's classic API, each path below `/api` as well. */
export function createClassicApi(
  context: HookContext,
  parts: Omit<ComfyParts, "jobs">,
  access: "open" | "token",
): ClassicApi {
  const { limits } = context.config;
  const prompts = new Prompts(context);
  const names = new InputNames(parts, prompts, limits.retention_hours * 3600_000);
  const pictures = createPictures(context.clock);
  const files = { names, pictures };
  const features = { supports_preview_metadata: true, max_upload_size: limits.upload_bytes };
  const sockets: Sockets = new Sockets(context, { access, features, status: () => publisher.status() });
  const publisher = new Publisher(context, prompts, sockets);
  const guarded =
    (handle: Handler): Handler =>
    (call) => {
      refuseForeign(context.config, call.req, access);
      return handle(call);
    };
  const routeOf = ({ name, path, handle, ...route }: ClassicRoute): Route => {
    // hooks have numbers at /api/queue
    const paths = path === "/queue" ? [path] : [path, `/api${path}`];
    return { ...route, name: `comfy_${name}`, door: "classic", paths, access, handle: guarded(handle) };
  };
  return {
    routes: [
      submitRoute(context, parts.graphs, { prompts, publisher, names }),
      ...promptRoutes(context, prompts),
      viewRoute(context, parts, files),
      ...uploadRoutes(context, parts, files),
      ...infoRoutes(parts, features),
    ].map(routeOf),
    upgrade: (req, socket, head) => void sockets.upgrade(req, socket, head),
    preview: (runId, png, node) => publisher.preview(runId, png, node),
    close() {
      sockets.close();
      pictures.close();
    },
  };
}
