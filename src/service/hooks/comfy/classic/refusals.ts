import type { IncomingMessage, ServerResponse } from "node:http";
import { printJson } from "../../../../io/json/lossless.js";
import { HookError } from "../../hook-error.js";
import { sendBytes } from "../../http/responses.js";

/** Facts of a refusal under the names of ComfyUI's clients. */
interface RefusalFacts {
  readonly details?: string;
  readonly extra_info?: Readonly<Record<string, unknown>>;
  readonly node_errors?: Readonly<Record<string, unknown>>;
}

/** A refusal of the classic API, which `sendClassicError` writes. */
export const refusal = (type: string, message: string, facts: RefusalFacts = {}, status = 400): HookError =>
  new HookError("invalid_request", message, { status, code: type, details: facts });

/** Sends a refusal as ComfyUI does. */
export function sendClassicError(req: IncomingMessage, res: ServerResponse, error: HookError, requestId: string): void {
  const { details = "", extra_info = {}, node_errors = {} } = (error.details ?? {}) as RefusalFacts;
  const body = { error: { type: error.code, message: error.message, details, extra_info }, node_errors };
  sendBytes(req, res, {
    status: error.status,
    headers: { ...error.headers, "X-Request-Id": requestId },
    bytes: Buffer.from(printJson(body)),
  });
}
