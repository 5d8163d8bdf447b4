import { nonFiniteIn } from "../../../graph/parse.js";
import { NumberLiteral, printJson } from "../../../io/json/lossless.js";
import type { Config } from "../../../render/config/config.js";
import {
  parseReference,
  parseTemplate,
  type Reference,
  type SignatureScheme,
  type Template,
} from "../../../render/config/incoming.js";
import { HookError } from "../hook-error.js";
import { type Headers, signatureCheck } from "./signatures.js";

export type SenderConfig = Config["channels"]["web"]["incoming"][string];

/** The request body of a start, from a sender's payload. */
export interface MappedStart {
  readonly message: string;
  readonly name?: string;
  readonly sessionKey?: string;
  readonly idempotencyKey?: string;
}

interface Custom {
  /** References to the sender's own id of a delivery; the first one with a value counts, if any. */
  readonly deliveryIds: readonly string[];
  readonly trial?: (request: SignedRequest) => object | undefined;
}

const IGNORED = { ok: true, status: "ignored" };

const CUSTOMS: Readonly<Record<SignatureScheme, Custom>> = {
  "standard-webhooks": { deliveryIds: ["{{webhook-id}}", "{{svix-id}}"] },
  github: {
    deliveryIds: ["{{X-GitHub-Delivery}}"],
    trial: ({ headers }) => (headers["x-github-event"] === "ping" ? IGNORED : undefined),
  },
  stripe: { deliveryIds: ["{{/id}}"] },
  slack: {
    // of events, and of commands
    deliveryIds: ["{{/event_id}}", "{{/trigger_id}}"],
    trial(request) {
      // the check of a command's certificate
      if (lookUp(request, { pointer: ["ssl_check"] }) === "1") return IGNORED;
      const challenge = lookUp(request, { pointer: ["challenge"] });
      const isTrial = lookUp(request, { pointer: ["type"] }) === "url_verification" && typeof challenge === "string";
      return isTrial ? { challenge } : undefined;
    },
  },
};

/**
 * A configured sender: the check of its signatures, and the way from its payload to a run. The templates of its
 * configuration are known to be right.
 */
export function createSender(config: SenderConfig) {
  const { trial, deliveryIds } = CUSTOMS[config.signature];
  const conditions = Object.entries(config.when ?? {}).map(([written, allowed]) => ({
    written,
    reference: parseReference(written),
    allowed: [allowed].flat().map(String),
  }));
  const message = optional(config.message);
  const placeholders = Object.entries(config.placeholders ?? {}).map(
    ([key, value]) => [key, typeof value === "string" ? parseTemplate(value) : value] as const,
  );
  const sessionKey = optional(config.session_key);
  const name = optional(config.name);
  const idempotencyKey = optional(config.idempotency_key);
  const deliveries = deliveryIds.map(parseTemplate);

  return {
    /** Fails with SignatureFault, before there is a body. */
    claim: signatureCheck({
      scheme: config.signature,
      secrets: [config.secrets].flat(),
      replaySeconds: config.replay_seconds,
    }),
    /** Response to a request that asks only whether the address works; undefined for any other. */
    trial: (request: SignedRequest): object | undefined => trial?.(request),
    /** The key of the first condition that the request does not meet; undefined if it meets all. */
    unmet(request: SignedRequest): string | undefined {
      const isUnmet = ({ reference, allowed }: (typeof conditions)[number]) => {
        const value = lookUp(request, reference);
        return value === undefined || nonFiniteIn(value) !== undefined || !allowed.includes(textOf(value));
      };
      return conditions.find(isUnmet)?.written;
    },
    /** Fails with invalid_request if a template has no value. */
    map(request: SignedRequest, maxChars: number): MappedStart {
      const filler = new TemplateFiller(request, maxChars);
      const text = (key: string, template: Template | undefined) => template && filler.text(key, template);
      const fills = placeholders.map(([key, value]) => [
        key,
        typeof value === "object" ? filler.value(`placeholders.${key}`, value) : value,
      ]);
      const own = text("message", message);
      return {
        message: config.placeholders === undefined ? own! : messageOf(own, fills),
        name: text("name", name),
        sessionKey: text("session_key", sessionKey),
        idempotencyKey: text("idempotency_key", idempotencyKey ?? deliveries.find(hasValues(request))),
      };
    },
  };
}

const optional = (text: string | undefined) => (text === undefined ? undefined : parseTemplate(text));

const hasValues = (request: SignedRequest) => (template: Template) =>
  template.every((piece) => typeof piece === "string" || lookUp(request, piece) !== undefined);

/** A message that fills placeholders: a JSON object. */
const messageOf = (own: string | undefined, fills: unknown[][]): string =>
  printJson(Object.fromEntries(own === undefined ? fills : [["message", own], ...fills]));

/** A signed request: its headers, and its payload as `parseJson` returns it. */
interface SignedRequest {
  readonly headers: Headers;
  readonly payload: unknown;
}

/** Looks up the value of a reference; undefined where the request has none, or null. */
function lookUp({ headers, payload }: SignedRequest, reference: Reference): unknown {
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
const textOf = (value: unknown): string => (typeof value === "string" ? value : printJson(value));

/**
 * Fills the templates of one request. The texts of all of them have `maxChars` characters at most. Fails with
 * invalid_request, which names the template and the reference that has no value.
 */
class TemplateFiller {
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
    const value = this.#lookUp(key, piece);
    const isScalar = typeof value === "number" || typeof value === "bigint" || typeof value === "boolean";
    return isScalar || value instanceof NumberLiteral ? value : this.text(key, template);
  }

  #require(key: string, reference: Extract<Template[number], object>): string {
    const value = this.#lookUp(key, reference);
    if (value !== undefined) return textOf(value);
    const what = "header" in reference ? "request has no header" : "payload has no value at";
    throw new HookError("invalid_request", `${key}: the ${what} ${reference.written || "its root"}`);
  }

  /** Python writes NaN, which no message has. */
  #lookUp(key: string, reference: Extract<Template[number], object>): unknown {
    const value = lookUp(this.#request, reference);
    const bad = nonFiniteIn(value);
    if (bad === undefined) return value;
    const at = reference.written || "its root";
    throw new HookError("invalid_request", `${key}: the payload has ${bad} at ${at}, expected a finite number`);
  }

  #spend(key: string, text: string): string {
    this.#charsLeft -= text.length;
    if (this.#charsLeft >= 0) return text;
    throw new HookError("invalid_request", `${key}: the filled-in texts are longer than limits.message_chars`);
  }
}
