import { type ErrorCode, type ErrorDetails, LatentkitError } from "./errors.js";

/** An error on its way between threads. Without code: one that is not the library's own. */
export interface SentError {
  readonly code?: ErrorCode;
  readonly message: string;
  readonly details?: ErrorDetails;
  readonly stack?: string;
}

/** An error as data that can be sent. */
export function sent(error: unknown): SentError {
  if (error instanceof LatentkitError) {
    const { code, message, details, stack } = error;
    return { code, message, details: { ...details }, stack };
  }
  return error instanceof Error ? { message: error.message, stack: error.stack } : { message: String(error) };
}

/** The error as it was before it was sent. */
export function revive({ code, message, details, stack }: SentError): Error {
  const error = code === undefined ? new Error(message) : new LatentkitError(code, message, details);
  if (stack !== undefined) error.stack = stack;
  return error;
}
