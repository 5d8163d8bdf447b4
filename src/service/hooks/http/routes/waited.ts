import { extname } from "node:path";
import { fileUrl } from "../../file-url.js";
import { HookError, type HookErrorKind } from "../../hook-error.js";
import type { RunFile, RunStatus, TerminalState } from "../../run.js";
import type { Call } from "../call.js";
import type { HookContext } from "../context.js";
import { readAccept, weightOf } from "../negotiation/accept.js";
import { sendJson } from "../responses.js";
import { runStatus } from "./payloads.js";
import { sendFile } from "./run-file.js";

/** Types of pictures, by the ends of their names. */
const PICTURE_TYPES: Readonly<Record<string, string>> = {
  ".png": "image/png",
  ".jpg": "image/jpeg",
  ".jpeg": "image/jpeg",
  ".webp": "image/webp",
  ".gif": "image/gif",
  ".avif": "image/avif",
};

const FAILURES: Readonly<Record<Exclude<TerminalState, "succeeded">, HookErrorKind>> = {
  failed: "run_failed",
  cancelled: "run_cancelled",
  timed_out: "run_timed_out",
  interrupted: "run_interrupted",
  expired: "run_expired",
};

// decision 248
/**
 * Waits for the end of a run. Resolves to undefined where it goes on after `seconds`, the client leaves, the service stops,
 * or too many requests wait and read streams: whatever happens here, the run is stored and goes on.
 */
export async function waitForEnd(
  { runs, slots, clock }: HookContext,
  res: Call["res"],
  runId: string,
  seconds: number,
): Promise<RunStatus | undefined> {
  const listener = runs.listen(runId);
  const stop = () => listener.close();
  const timer = clock.setTimer(seconds * 1000, stop);
  res.once("close", stop);
  let release: (() => void) | undefined;
  try {
    release = slots.take(runId, () => res.destroy());
    for (;;) {
      if ((await runs.outcome(runId)) !== null) return await runs.status(runId);
      if (listener.isClosed) return undefined;
      await listener.changed();
    }
  } catch (error) {
    // the start has succeeded: a refusal now would make its client start again
    if (error instanceof HookError) return undefined;
    throw error;
  } finally {
    release?.();
    timer.cancel();
    stop();
    res.off("close", stop);
  }
}

/**
 * Responds with an ended run: its first picture where the client prefers one to JSON, else its status. A run without success
 * becomes an error.
 */
export async function sendEnded(
  context: HookContext,
  call: Call,
  run: RunStatus,
  headers: Readonly<Record<string, string>>,
): Promise<void> {
  const { req, res } = call;
  if (run.state !== "succeeded") {
    throw new HookError(FAILURES[run.state as keyof typeof FAILURES], run.error?.error, { headers });
  }
  const picture = preferredPicture(run.files, req.headers.accept);
  if (picture === undefined) {
    return sendJson(req, res, { status: 200, body: runStatus(req.baseUrl, run), headers });
  }
  await sendFile(context, call, picture, {
    ...headers,
    "Content-Disposition": `inline; filename*=UTF-8''${extendedValue(picture.name)}`,
    "Content-Location": req.baseUrl + fileUrl(run.id, picture.name),
  });
}

function preferredPicture(files: readonly RunFile[], accept = ""): RunFile | undefined {
  const accepted = readAccept(accept);
  const json = weightOf(accepted, "application/json");
  return files.find((file) => {
    const type = typeOf(file);
    const weight = type?.startsWith("image/") ? weightOf(accepted, type) : 0;
    return weight > 0 && weight >= json;
  });
}

/** A text as a parameter of a header spells it (RFC 8187). */
const extendedValue = (text: string): string =>
  encodeURIComponent(text).replace(/['()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);

const typeOf = ({ contentType, path }: RunFile): string | undefined =>
  contentType === null
    ? PICTURE_TYPES[extname(path).toLowerCase()]
    : contentType.replace(/;.*/s, "").trim().toLowerCase();
