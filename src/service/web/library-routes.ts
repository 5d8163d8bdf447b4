import { LatentkitError } from "../../base/errors.js";
import { lazy } from "../../base/lazy.js";
import type { ModelListing } from "../../host/checkpoint/reports/header-reader.js";
import type { Host } from "../../host/host.js";
import { printJson } from "../../io/json/lossless.js";
import { describeNode } from "../../nodes/describe.js";
import { defaultHost, defaultRegistry } from "../../render/surroundings.js";
import type { Clock } from "../hooks/clock.js";
import { HookError } from "../hooks/hook-error.js";
import type { Route } from "../hooks/http/call.js";
import type { HookContext } from "../hooks/http/context.js";
import { sendBytes } from "../hooks/http/responses.js";
import { type PageSchemas, pageRoute } from "./page-route.js";

/** Time for which a listing of model files counts as new. */
const LISTING_MS = 10_000;

/** Parts of a service that the page shows. */
export interface Library {
  /** Source of the choices of model files; absent if other processes render. */
  readonly host?: Host;
  /** Folders of model files. */
  readonly models: readonly string[];
}

/** The nodes and model files of a service. */
export function libraryRoutes(
  { clock, tokens }: HookContext,
  { host, models }: Library,
  { any }: PageSchemas,
): Route[] {
  const described = lazy(() => {
    const keys = defaultRegistry.keys();
    return { nodes: keys.map((key) => describeNode(defaultRegistry.get(key)!, { host: host ?? defaultHost })) };
  });
  const nodes = async () => {
    await host?.refresh?.();
    return described();
  };
  const listing = shared(clock, listOf(models));
  const get = (name: string, summary: string, read: () => object | Promise<object>): Route =>
    pageRoute(name, "GET", {
      summary,
      responses: { 200: { json: any } },
      async handle({ req, res }) {
        const body = await read();
        sendBytes(req, res, { status: 200, bytes: Buffer.from(printJson({ ok: true, ...body })) });
      },
    });
  return [
    // whether there is a token can be told from any refusal
    { ...get("about", "Report whether a token is set", () => ({ is_configured: tokens.configured })), access: "open" },
    get("nodes", "Describe the nodes", nodes),
    get("models", "List the model files", async () => {
      const { models: listed, isComplete } = await listing();
      return { has_folders: models.length > 0, models: listed, is_complete: isComplete };
    }),
  ];
}

type Listed = Awaited<ReturnType<ModelListing["list"]>>;

function listOf(models: readonly string[]): () => Promise<Listed> {
  let opened: ModelListing | undefined;
  return async () => {
    if (models.length === 0) return { models: [], isComplete: true };
    const { ModelListing } = await import("../../host/checkpoint/reports/header-reader.js");
    try {
      opened ??= new ModelListing(models);
      return await opened.list();
    } catch (error) {
      if (!(error instanceof LatentkitError)) throw error;
      throw new HookError("files_unavailable", error.message, { cause: error });
    }
  };
}

/** Shares one listing among requests within some seconds: it looks at every file. An incomplete one is not kept. */
function shared(clock: Clock, read: () => Promise<Listed>): () => Promise<Listed> {
  let last: { readonly at: number; readonly result: Promise<Listed> } | undefined;
  return () => {
    if (last === undefined || clock.monotonic() - last.at > LISTING_MS) {
      const own = { at: clock.monotonic(), result: read() };
      last = own;
      const forget = () => {
        if (last === own) last = undefined;
      };
      own.result.then(({ isComplete }) => isComplete || forget(), forget);
    }
    return last.result;
  };
}
