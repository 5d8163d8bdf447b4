import { constants } from "node:fs";
import { type FileHandle, lstat, open, realpath } from "node:fs/promises";
import { extname } from "node:path";
import { pipeline } from "node:stream/promises";
import { HookError } from "../../hook-error.js";
import type { RunFile } from "../../run.js";
import { type Call, requireRunId } from "../call.js";
import type { HookContext } from "../context.js";

/** Flags that Windows lacks. Without O_NONBLOCK, opening a FIFO would block. */
const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants as Partial<typeof constants>;
const GONE = ["ENOENT", "ENOTDIR", "ELOOP", "EACCES", "EPERM", "ENXIO"];

/** Sends the file that the path names. Fails: run_not_found, not_found. */
export async function sendRunFile(context: HookContext, call: Call): Promise<void> {
  await sendFile(context, call, await context.runs.file(requireRunId(call), call.params.name!));
}

/** Sends a file that a run reported, with ETag and Last-Modified. Fails with not_found. */
export async function sendFile(
  { turns }: HookContext,
  { req, res }: Call,
  file: RunFile,
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  await turns.next();
  const handle = await openReported(file.path);
  try {
    const { size, mtimeMs, mtime } = await handle.stat();
    res.type(file.contentType ?? extname(file.path));
    // files come from agents: their content must not run as a page of this origin
    res.set({
      ...headers,
      "Content-Length": String(size),
      "Cache-Control": "private, no-cache",
      ETag: `W/"${size.toString(16)}-${Math.floor(mtimeMs).toString(16)}"`,
      "Last-Modified": mtime.toUTCString(),
      "X-Content-Type-Options": "nosniff",
      "Content-Security-Policy": "default-src 'none'; sandbox",
    });
    if (req.fresh) {
      res.removeHeader("Content-Length");
      return void res.writeHead(304).end();
    }
    if (req.method === "HEAD" || size === 0) return void res.writeHead(200).end();
    await send(handle, size, res);
  } finally {
    await handle.close();
  }
}

async function send(handle: FileHandle, size: number, res: Call["res"]): Promise<void> {
  // the length has been sent: bytes appended meanwhile are left out
  const content = handle.createReadStream({ start: 0, end: size - 1, autoClose: false });
  try {
    await pipeline(content, res, { end: false });
  } catch (error) {
    // the reader left
    if ((error as NodeJS.ErrnoException).code === "ERR_STREAM_PREMATURE_CLOSE") return;
    throw error;
  }
  if (content.bytesRead < size) res.destroy();
  else res.end();
}

/**
 * Opens the reported file itself: refuses a link at its path, and at the path of any folder above it. The opened file is
 * compared with the one at the path, so a link that appears and disappears meanwhile gains nothing.
 */
async function openReported(path: string): Promise<FileHandle> {
  const handle = await open(path, O_RDONLY! | O_NOFOLLOW | O_NONBLOCK).catch((error: NodeJS.ErrnoException) => {
    throw GONE.includes(error.code ?? "") ? gone() : error;
  });
  try {
    const opened = await handle.stat({ bigint: true });
    if (!opened.isFile() || (await realpath(path).catch(() => undefined)) !== path) throw gone();
    const atPath = await lstat(path, { bigint: true }).catch(() => undefined);
    if (atPath?.ino !== opened.ino || atPath.dev !== opened.dev) throw gone();
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

const gone = () => new HookError("not_found", "the file is gone");
