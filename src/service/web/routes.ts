import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { HookError } from "../hooks/hook-error.js";
import type { Call, Route } from "../hooks/http/call.js";
import type { HookContext } from "../hooks/http/context.js";
import { sendBytes } from "../hooks/http/responses.js";
import { DescribedRuns } from "./described-runs.js";
import { inspectRoutes } from "./inspect-routes.js";
import { type Library, libraryRoutes } from "./library-routes.js";
import { pageSchemas } from "./page-route.js";
import { pageRunRoutes, pictureRoutes } from "./run-routes.js";

/** The page and the routes that it needs beside those of hooks; these take the token. `deletesIn`: folder whose pictures it may delete. */
export function webRoutes(context: HookContext, library: Library, deletesIn?: string): Route[] {
  const described = new DescribedRuns(context);
  const bodies = pageSchemas(context.schemas);
  return [
    ...pageRoutes(),
    ...pageRunRoutes(context, described, bodies),
    ...pictureRoutes(context, described, bodies, deletesIn),
    ...inspectRoutes(context, bodies),
    ...libraryRoutes(context, library, bodies),
  ];
}

/** Folder that `scripts/build-page.mjs` writes. */
const BUILT = fileURLToPath(new URL("./page/", import.meta.url));

// decisions: The page keeps the token for its tab
/** Nothing but the page's own files, the service's addresses, and pictures that the page made itself. */
const SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob: data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const HEADERS = {
  "Content-Security-Policy": SECURITY_POLICY,
  "Cross-Origin-Opener-Policy": "same-origin",
  "Referrer-Policy": "no-referrer",
  Vary: "Accept-Encoding",
};

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

interface PageFile {
  readonly type: string;
  readonly bytes: Buffer;
  readonly gzip: Buffer;
}

/**
 * The page's own files, open to all: they reveal nothing. `folder` holds index.html, and files with hashed names.
 *
 * @internal
 */
export function pageRoutes(folder: string = BUILT): Route[] {
  const files = readFiles(folder);
  const index = files.get("index.html");
  const assets = readFiles(join(folder, "page"));
  const send = ({ req, res }: Call, file: PageFile | undefined, cache: string) => {
    if (file === undefined) throw new HookError("not_found");
    const isGzip = /\bgzip\b/i.test(req.headers["accept-encoding"]?.toString() ?? "");
    const encoding: Record<string, string> = isGzip ? { "Content-Encoding": "gzip" } : {};
    const headers = { ...HEADERS, ...encoding, "Cache-Control": cache };
    sendBytes(req, res, { status: 200, bytes: isGzip ? file.gzip : file.bytes, headers, type: file.type });
  };
  return [
    {
      name: "page",
      door: "page",
      paths: ["/"],
      access: "open",
      method: "GET",
      summary: "Show the page",
      responses: { 200: { type: "text/html" } },
      handle(call) {
        if (index === undefined) throw new HookError("not_found", 'the page is not built: run "npm run build"');
        send(call, index, "no-cache");
      },
    },
    {
      name: "page_file",
      door: "page",
      paths: ["/page/:name"],
      access: "open",
      method: "GET",
      summary: "Send a script or a style of the page",
      responses: { 200: { type: "text/javascript" } },
      // their names hold a hash of their content
      handle: (call) => send(call, assets.get(call.params.name!), "public, max-age=31536000, immutable"),
    },
  ];
}

/** Files of a folder by name; none if it does not exist. */
function readFiles(folder: string): ReadonlyMap<string, PageFile> {
  if (!existsSync(folder)) return new Map();
  const names = readdirSync(folder).filter((name) => Object.hasOwn(TYPES, extname(name)));
  return new Map(
    names.map((name) => {
      const bytes = readFileSync(join(folder, name));
      return [name, { type: TYPES[extname(name)]!, bytes, gzip: gzipSync(bytes, { level: 9 }) }];
    }),
  );
}
