import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { LatentkitError } from "../../../base/errors.js";
import { refuseForeign, refuseForeignOrigin } from "../http/access/cross-origin.js";
import type { Handler, Place, Route } from "../http/call.js";
import type { HookContext } from "../http/context.js";
import { maxRunSeconds } from "../runs/terms.js";
import { AssetFiles } from "./asset-files.js";
import { assetRoutes } from "./asset-routes.js";
import { infoRoutes, promptRoutes } from "./classic/classic-routes.js";
import { uploadRoutes, viewRoute } from "./classic/file-routes.js";
import { InputNames } from "./classic/input-names.js";
import { createPictures } from "./classic/pictures/pictures.js";
import { Prompts } from "./classic/prompts.js";
import { Publisher } from "./classic/publisher.js";
import { Sockets } from "./classic/sockets.js";
import { submitRoute } from "./classic/submit-prompt.js";
import { type ClassicRoute, type ComfyParts, type ComfyRoute, outputKeeper } from "./comfy-parts.js";
import { jobEventsRoute } from "./job-events.js";
import { jobRoutes } from "./job-routes.js";
import { comfySchemas, Jobs } from "./jobs.js";

/** Time beyond the longest wait and run of a job in which its assets stay. */
const SLACK_SECONDS = 3600;

/** All that is below version 2 and unknown gets the contract's envelope as well. */
const UNKNOWN: Place = { name: "v2_unknown", door: "comfy", paths: ["/api/v2", "/api/v2/", "/api/v2/*rest"] };

/** The APIs of ComfyUI that the configuration opens. */
export interface ComfyApis {
  readonly routes: readonly Route[];
  /** Paths that are answered with 404 in the format of their API. */
  readonly unknown: readonly Place[];
  /** Opens a WebSocket on `/ws`, or refuses it; absent if the classic API is closed. */
  upgrade?(req: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Shows the client of a prompt a picture of the moment, a PNG file. */
  preview(runId: string, png: Uint8Array, node?: string): void;
  /** Closes the WebSockets, and ends work on pictures. */
  close(): void;
}

// A look at a job younger than a second is held: the SDK looks at once and then after half a second.
// decisions: Comfy APIs are closed by default; Comfy APIs are closed by default
/** ComfyUI's APIs: version 2 below `/api/v2`, and the classic one. Throws config.invalid for an agent without graphs. */
export function createComfyApis(context: HookContext): ComfyApis {
  const { comfy_api, comfy_classic } = context.config.web;
  if (comfy_api === "none" && comfy_classic === "none") return { routes: [], unknown: [], preview() {}, close() {} };
  const parts = partsOf(context, comfy_api === "none" ? "comfy_classic" : "comfy_api");
  const classic = comfy_classic === "none" ? undefined : createClassicApi(context, parts, comfy_classic);
  const jobs = comfy_api === "none" ? [] : versionTwo(context, parts, comfy_api);
  return {
    preview: () => undefined,
    close: () => undefined,
    ...classic,
    routes: [...jobs, ...(classic?.routes ?? [])],
    unknown: comfy_api === "none" ? [] : [UNKNOWN],
  };
}

function partsOf(context: HookContext, key: string): ComfyParts {
  const { limits } = context.config;
  const { graphs } = context.agent;
  if (graphs === undefined) {
    throw new LatentkitError("config.invalid", `${key}: needs an agent with graphs, as createGraphAgent makes one.`);
  }
  const assets = new AssetFiles({
    folder: graphs.assetsDir,
    mostBytes: limits.uploads_bytes,
    graceMs: (limits.queue_seconds + maxRunSeconds(limits) + SLACK_SECONDS) * 1000,
    now: () => context.runs.now(),
  });
  return { graphs, bodies: comfySchemas(), assets, jobs: new Jobs(context), keepOutput: outputKeeper(context, assets) };
}

/** Has foreign pages refused before a route's own work. */
const guarded =
  (handle: Handler, refuse: (req: IncomingMessage) => void): Handler =>
  (call) => {
    refuse(call.req);
    return handle(call);
  };

function versionTwo(context: HookContext, parts: ComfyParts, access: "open" | "token"): Route[] {
  const routes: ComfyRoute[] = [
    ...jobRoutes(context, parts),
    jobEventsRoute(context, parts),
    ...assetRoutes(context, parts),
  ];
  const refuse = (req: IncomingMessage) =>
    access === "open" ? refuseForeign(context.config, req, access) : refuseForeignOrigin(context.config, req);
  return routes.map((route) => {
    // the content of an asset has a signed address, which an open API does not need
    const own = access === "open" ? access : (route.access ?? access);
    return { ...route, door: "comfy", access: own, handle: guarded(route.handle, refuse) };
  });
}

// decisions: Comfy APIs are closed by default
/** ComfyUI's classic API, each path below `/api` as well. */
function createClassicApi(context: HookContext, parts: Omit<ComfyParts, "jobs">, access: "open" | "token") {
  const { limits } = context.config;
  const prompts = new Prompts(context);
  const names = new InputNames(parts, prompts, limits.retention_hours * 3600_000);
  const pictures = createPictures(context.clock);
  const files = { names, pictures };
  const features = { supports_preview_metadata: true, max_upload_size: limits.upload_bytes };
  const sockets: Sockets = new Sockets(context, { access, features, status: () => publisher.status() });
  const publisher = new Publisher(context, prompts, sockets);
  const refuse = (req: IncomingMessage) => refuseForeign(context.config, req, access);
  const routeOf = ({ name, path, handle, ...route }: ClassicRoute): Route => {
    // hooks have numbers at /api/queue
    const paths = path === "/queue" ? [path] : [path, `/api${path}`];
    return { ...route, name: `comfy_${name}`, door: "classic", paths, access, handle: guarded(handle, refuse) };
  };
  return {
    routes: [
      submitRoute(context, parts.graphs, { prompts, publisher, names }),
      ...promptRoutes(context, prompts),
      viewRoute(context, parts, files),
      ...uploadRoutes(context, parts, files),
      ...infoRoutes(parts, features),
    ].map(routeOf),
    upgrade: (req: IncomingMessage, socket: Duplex, head: Buffer) => void sockets.upgrade(req, socket, head),
    preview: (runId: string, png: Uint8Array, node?: string) => publisher.preview(runId, png, node),
    close() {
      sockets.close();
      pictures.close();
    },
  };
}
