import { pipeline } from "node:stream/promises";
import type { OpenedFile } from "../../files/file-store.js";
import { HookError } from "../../hook-error.js";
import type { Call } from "../../http/call.js";

const RANGE = /^bytes=(?:(\d{1,15})-(\d{0,15})|-(\d{1,15}))$/;

/** Sends a file, or the one range of it that the request names; several ranges get the whole. */
export async function sendContent({ req, res }: Call, file: OpenedFile, contentType: string): Promise<void> {
  const { size, etag, modified } = file;
  const range = rangeOf(req.headers.range, size);
  const [start, end] = range ?? [0, size - 1];
  res.writeHead(range === undefined ? 200 : 206, {
    "Content-Type": contentType,
    "Content-Length": String(end - start + 1),
    "Accept-Ranges": "bytes",
    ...(range !== undefined && { "Content-Range": `bytes ${start}-${end}/${size}` }),
    "Cache-Control": "private, no-cache",
    ...(etag !== undefined && { ETag: etag }),
    "Last-Modified": modified.toUTCString(),
    "X-Content-Type-Options": "nosniff",
    // files come from strangers: their content must not run as a page of this origin
    "Content-Security-Policy": "default-src 'none'; sandbox",
  });
  if (req.method === "HEAD" || size === 0) return void res.end();
  try {
    await pipeline(file.read(), (bytes) => slice(bytes as AsyncIterable<Buffer>, start, end), res, { end: false });
    res.end();
  } catch (error) {
    // the reader left
    if ((error as NodeJS.ErrnoException).code !== "ERR_STREAM_PREMATURE_CLOSE") throw error;
    res.destroy();
  }
}

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

async function* slice(chunks: AsyncIterable<Buffer>, start: number, end: number): AsyncGenerator<Buffer, void> {
  let at = 0;
  for await (const chunk of chunks) {
    const from = Math.max(0, start - at);
    const to = Math.min(chunk.length, end + 1 - at);
    if (from < to) yield chunk.subarray(from, to);
    at += chunk.length;
    if (at > end) return;
  }
}
