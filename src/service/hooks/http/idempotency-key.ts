import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { HookError } from "../hook-error.js";

/** 1 to 255 visible ASCII characters. */
export const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;

/**
 * Key under which a repeated request gets the first one's response: header Idempotency-Key, else webhook-id, else the
 * body's. undefined: none. Fails with invalid_request.
 */
export function readIdempotencyKey(req: IncomingMessage, fromBody: string | null | undefined): string | undefined {
  const key = req.headers["idempotency-key"] ?? req.headers["webhook-id"] ?? fromBody ?? undefined;
  return key === undefined ? undefined : checkIdempotencyKey(key);
}

/** Fails with invalid_request: a key that protects nothing must not pass silently. */
export function checkIdempotencyKey(key: unknown): string {
  if (typeof key !== "string" || !IDEMPOTENCY_KEY.test(key)) {
    throw new HookError("invalid_request", "the idempotency key must be 1 to 255 visible ASCII characters");
  }
  return key;
}

/** Digest of a request's payload; spelling, order and unknown fields of the body do not count. */
export const hashPayload = (payload: readonly unknown[]): string =>
  createHash("sha256").update(JSON.stringify(payload)).digest("hex");
