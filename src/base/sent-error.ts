import { codeOf, type ErrorCode, type ErrorDetails, LatentkitError, messageOf } from "./errors.js";

/** An error on its way between threads, without code unless it is the library's own. */
export interface SentError {
  readonly code?: ErrorCode;
  readonly message: string;
  readonly details?: ErrorDetails;
  readonly stack?: string;
  /** Name of an error that is not the library's own, and its code, such as ENOENT. */
  readonly name?: string;
  readonly foreignCode?: string;
  readonly cause?: SentError;
}

/** Number of causes that are sent with an error; they may form a circle. */
const SENT_CAUSES = 4;

export function serializeError(error: unknown, causes = SENT_CAUSES): SentError {
  try {
    if (!(error instanceof Error)) return { message: messageOf(error) };
    const { message, stack } = error;
    const cause = error.cause === undefined || causes === 0 ? undefined : serializeError(error.cause, causes - 1);
    const sent = { message: String(message), ...(typeof stack === "string" && { stack }), ...(cause && { cause }) };
    if (error instanceof LatentkitError) return { ...sent, code: error.code, details: { ...error.details } };
    return { ...sent, name: String(error.name), foreignCode: codeOf(error) };
  } catch {
    // a getter of an error that a node threw
    return { message: messageOf(error) };
  }
}

/** The error as it was before it was sent; a cause that was no error is one with its text. */
export function deserializeError({ code, message, details, stack, name, foreignCode, cause }: SentError): Error {
  const error = code === undefined ? new Error(message) : new LatentkitError(code, message, details);
  const add = (key: string, value: unknown) => Object.defineProperty(error, key, { value, ...HIDDEN });
  if (stack !== undefined) error.stack = stack;
  if (name !== undefined && name !== error.name) add("name", name);
  if (foreignCode !== undefined) Object.assign(error, { code: foreignCode });
  // not by the constructor, which would add a hint once more
  if (cause !== undefined) add("cause", deserializeError(cause));
  return error;
}

const HIDDEN = { enumerable: false, writable: true, configurable: true };
