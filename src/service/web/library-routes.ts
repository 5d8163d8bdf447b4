import { LatentkitError } from "../../base/errors.js";
import { lazy } from "../../base/lazy-packages.js";
import type { ListedModel } from "../../host/checkpoint/reports/list-models.js";
import type { Host } from "../../host/types.js";
import { printJson } from "../../io/json/lossless.js";
import { describeNode } from "../../nodes/describe.js";
import { defaultHost, defaultRegistry } from "../../render/defaults.js";
import type { Clock } from "../hooks/clock.js";
import { HookError } from "../hooks/hook-error.js";
import type { Handler, Route } from "../hooks/http/call.js";
import type { HookContext } from "../hooks/http/context.js";
import { sendBytes } from "../hooks/http/responses.js";

/** Time for which a listing of model files counts as new. */
const LISTING_MS = 10_000;

/** Parts of a service that the page shows. */
export interface Library {
  /** Source of the choices of model files; absent where other processes render. */
  readonly host?: Host;
  /** Folders of model files. */
  readonly models: readonly string[];
}

/** The nodes and model files of a service. */
export function libraryRoutes({ clock, tokens }: HookContext, { host, models }: Library): Route[] {
  const nodes = lazy(() => {
    const keys = defaultRegistry.keys();
    return { nodes: keys.map((key) => describeNode(defaultRegistry.get(key)!, { host: host ?? defaultHost })) };
  });
  const listing = shared(clock, () => list(models));
  const route = (name: string, read: () => object | Promise<object>): Route => {
    const handler: Handler = async ({ req, res }) => {
      const body = await read();
      sendBytes(req, res, { status: 200, bytes: Buffer.from(printJson({ ok: true, ...body })) });
    };
    return { name: `page_${name}`, paths: [`/api/page/${name}`], access: "token", handlers: { GET: handler } };
  };
  return [
    // whether there is a token can be told from any refusal
    { ...route("about", () => ({ is_configured: tokens.configured })), access: "open" },
    route("nodes", nodes),
    route("models", async () => ({ has_folders: models.length > 0, models: await listing() })),
  ];
}

async function list(models: readonly string[]): Promise<readonly ListedModel[]> {
  if (models.length === 0) return [];
  const { listModels } = await import("../../host/checkpoint/reports/list-models.js");
  try {
    return await listModels({ models, hashes: false });
  } catch (error) {
    if (!(error instanceof LatentkitError)) throw error;
    throw new HookError("files_unavailable", error.message, { cause: error });
  }
}

/** Shares one listing among all who ask within some seconds: it reads the head of every file. */
function shared<T>(clock: Clock, read: () => Promise<T>): () => Promise<T> {
  let last: { readonly at: number; readonly result: Promise<T> } | undefined;
  return () => {
    if (last === undefined || clock.monotonic() - last.at > LISTING_MS) {
      const result = read();
      last = { at: clock.monotonic(), result };
    }
    return last.result;
  };
}
