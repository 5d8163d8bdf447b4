import { extname } from "node:path";
import { pipeline } from "node:stream/promises";
import type { OpenedFile } from "../../files/file-store.js";
import type { RunFile } from "../../run.js";
import { type Call, requireRunId } from "../call.js";
import type { HookContext } from "../context.js";

/** Sends the file that the path names. Fails: run_not_found, not_found, files_unavailable. */
export async function sendRunFile(context: HookContext, call: Call): Promise<void> {
  await sendFile(context, call, await context.runs.file(requireRunId(call), call.params.name!));
}

/** Sends a file that a run reported, with ETag and Last-Modified. Fails with not_found and files_unavailable. */
export async function sendFile(
  { turns, files }: HookContext,
  { req, res }: Call,
  file: RunFile,
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  await turns.next();
  const opened = await files.open(file, { headOnly: req.method === "HEAD" });
  try {
    const { size, etag, modified } = opened;
    res.type(file.contentType ?? extname(file.path));
    // files come from agents: their content must not run as a page of this origin
    res.set({
      ...headers,
      "Content-Length": String(size),
      "Cache-Control": "private, no-cache",
      ...(etag !== undefined && { ETag: etag }),
      "Last-Modified": modified.toUTCString(),
      "X-Content-Type-Options": "nosniff",
      "Content-Security-Policy": "default-src 'none'; sandbox",
    });
    if (req.fresh) {
      res.removeHeader("Content-Length");
      return void res.writeHead(304).end();
    }
    if (req.method === "HEAD" || size === 0) return void res.writeHead(200).end();
    await send(opened, res);
  } finally {
    await opened.close();
  }
}

async function send(file: OpenedFile, res: Call["res"]): Promise<void> {
  try {
    await pipeline(file.read(), res, { end: false });
    res.end();
  } catch (error) {
    // the reader left
    if ((error as NodeJS.ErrnoException).code !== "ERR_STREAM_PREMATURE_CLOSE") throw error;
    res.destroy();
  }
}
