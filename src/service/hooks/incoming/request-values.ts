import { NumberLiteral, printJson } from "../../../io/json/lossless.js";
import type { Reference, Template } from "../../../render/config/template.js";
import { HookError } from "../hook-error.js";
import type { Headers } from "./signatures.js";

/** A signed request: its headers, and its payload as `parseJson` returns it. */
export interface SignedRequest {
  readonly headers: Headers;
  readonly payload: unknown;
}

/** Looks up the value of a reference; undefined where the request has none, or null. */
export function lookUp({ headers, payload }: SignedRequest, reference: Reference): unknown {
  if ("header" in reference) return headers[reference.header]?.toString();
  let value = payload;
  for (const key of reference.pointer) value = childOf(value, key);
  return value ?? undefined;
}

function childOf(value: unknown, key: string): unknown {
  if (typeof value !== "object" || value === null || value instanceof NumberLiteral) return undefined;
  if (Array.isArray(value)) return /^(0|[1-9]\d{0,8})$/.test(key) ? value[Number(key)] : undefined;
  return Object.hasOwn(value, key) ? (value as Record<string, unknown>)[key] : undefined;
}

/** Returns a value as text: texts as they are, numbers with all their digits, lists and objects as JSON. */
export const textOf = (value: unknown): string => (typeof value === "string" ? value : printJson(value));

/**
 * Fills the templates of one request. The texts of all of them have `maxChars` characters at most. Fails with
 * invalid_request, which names the template and the reference that has no value.
 */
export class TemplateFiller {
  readonly #request: SignedRequest;
  #charsLeft: number;

  constructor(request: SignedRequest, maxChars: number) {
    this.#request = request;
    this.#charsLeft = maxChars;
  }

  /** `key` names the template in messages. */
  text(key: string, template: Template): string {
    let text = "";
    for (const piece of template)
      text += this.#spend(key, typeof piece === "string" ? piece : this.#require(key, piece));
    return text;
  }

  /** As `text`, but a template of one reference keeps numbers and booleans as they are. */
  value(key: string, template: Template): unknown {
    const [piece, ...others] = template;
    if (piece === undefined || typeof piece === "string" || others.length > 0) return this.text(key, template);
    const value = lookUp(this.#request, piece);
    const isScalar = typeof value === "number" || typeof value === "bigint" || typeof value === "boolean";
    return isScalar || value instanceof NumberLiteral ? value : this.text(key, template);
  }

  #require(key: string, reference: Extract<Template[number], object>): string {
    const value = lookUp(this.#request, reference);
    if (value !== undefined) return textOf(value);
    const what = "header" in reference ? "request has no header" : "payload has no value at";
    throw new HookError("invalid_request", `${key}: the ${what} ${reference.written || "its root"}`);
  }

  #spend(key: string, text: string): string {
    this.#charsLeft -= text.length;
    if (this.#charsLeft >= 0) return text;
    throw new HookError("invalid_request", `${key}: the payload's texts are too long for a message`);
  }
}
