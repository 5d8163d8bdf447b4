import { extname } from "node:path";
import { pipeline } from "node:stream/promises";
import type { OpenedFile } from "../../files/file-store.js";
import { HookError } from "../../hook-error.js";
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
    res.type(file.contentType ?? extname(file.path));
    res.set({ ...headers, ...fileHeaders(opened), "Content-Length": String(opened.size) });
    if (req.fresh) {
      res.removeHeader("Content-Length");
      return void res.writeHead(304).end();
    }
    res.writeHead(200);
    await sendBody({ req, res }, opened, 0, opened.size - 1);
  } finally {
    await opened.close();
  }
}

const RANGE = /^bytes=(?:(\d{1,15})-(\d{0,15})|-(\d{1,15}))$/;

/** Sends a file, or the one range of it that the request names; several ranges, or another file by its If-Range, get the whole. */
export async function sendContent({ req, res }: Call, file: OpenedFile, contentType: string): Promise<void> {
  const range = isNamed(file, req.headers["if-range"]) ? rangeOf(req.headers.range, file.size) : undefined;
  const [start, end] = range ?? [0, file.size - 1];
  res.writeHead(range === undefined ? 200 : 206, {
    "Content-Type": contentType,
    "Content-Length": String(end - start + 1),
    "Accept-Ranges": "bytes",
    ...(range !== undefined && { "Content-Range": `bytes ${start}-${end}/${file.size}` }),
    ...fileHeaders(file),
  });
  await sendBody({ req, res }, file, start, end);
}

/** Headers of every file. Files come from agents and strangers: their content must not run as a page of this origin. */
const fileHeaders = ({ etag, modified }: OpenedFile) => ({
  "Cache-Control": "private, no-cache",
  ...(etag !== undefined && { ETag: etag }),
  "Last-Modified": modified.toUTCString(),
  "X-Content-Type-Options": "nosniff",
  "Content-Security-Policy": "default-src 'none'; sandbox",
});

async function sendBody({ req, res }: Pick<Call, "req" | "res">, file: OpenedFile, start: number, end: number) {
  if (req.method === "HEAD" || file.size === 0) return void res.end();
  const part = (bytes: AsyncIterable<Buffer>) => bytesBetween(bytes, start, end);
  try {
    if (start === 0 && end === file.size - 1) await pipeline(file.read(), res, { end: false });
    else await pipeline(file.read(), part, res, { end: false });
    res.end();
  } catch (error) {
    // the reader left
    if ((error as NodeJS.ErrnoException).code !== "ERR_STREAM_PREMATURE_CLOSE") throw error;
    res.destroy();
  }
}

/** Whether If-Range is absent or names the file as it is; weak tags never do (RFC 9110). */
const isNamed = ({ etag, modified }: OpenedFile, ifRange: string | string[] | undefined): boolean =>
  ifRange === undefined || ifRange === modified.toUTCString() || (ifRange === etag && !etag.startsWith("W/"));

/** First and last byte; undefined for the whole file. Fails with range_not_satisfiable. */
function rangeOf(header: string | undefined, size: number): [number, number] | undefined {
  const [, first, last, suffix] = RANGE.exec(header ?? "") ?? [];
  if (first === undefined && suffix === undefined) return undefined;
  const start = suffix === undefined ? Number(first) : Math.max(0, size - Number(suffix));
  const end = suffix !== undefined || last === "" ? size - 1 : Math.min(Number(last), size - 1);
  if (start <= end && start < size) return [start, end];
  const headers = { "Content-Range": `bytes */${size}` };
  throw new HookError("range_not_satisfiable", `Range: expected bytes below ${size}`, { headers });
}

async function* bytesBetween(chunks: AsyncIterable<Buffer>, start: number, end: number): AsyncGenerator<Buffer, void> {
  let at = 0;
  for await (const chunk of chunks) {
    const from = Math.max(0, start - at);
    const to = Math.min(chunk.length, end + 1 - at);
    if (from < to) yield chunk.subarray(from, to);
    at += chunk.length;
    if (at > end) return;
  }
}

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  ".png": "image/png",
  ".jpg": "image/jpeg",
  ".jpeg": "image/jpeg",
  ".webp": "image/webp",
  ".gif": "image/gif",
  ".avif": "image/avif",
  ".mp4": "video/mp4",
  ".webm": "video/webm",
  ".wav": "audio/wav",
  ".mp3": "audio/mpeg",
  ".flac": "audio/flac",
  ".txt": "text/plain",
  ".csv": "text/csv",
  ".json": "application/json",
};

/** Content type of a file by the end of its name. */
export const contentTypeOf = (name: string): string =>
  CONTENT_TYPES[extname(name).toLowerCase()] ?? "application/octet-stream";

/** Kinds of outputs. */
export const OUTPUT_KINDS = ["image", "video", "audio", "text", "latent", "file"] as const;

/** Kind of an output by its content type and name. */
export function kindOf(contentType: string, name: string): (typeof OUTPUT_KINDS)[number] {
  if (extname(name).toLowerCase() === ".latent") return "latent";
  const kind = contentType.split("/", 1)[0]!;
  return kind === "image" || kind === "video" || kind === "audio" || kind === "text" ? kind : "file";
}
