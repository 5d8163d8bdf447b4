import { ERROR_CODES } from "../../base/errors.js";
import { loadZod } from "../../base/lazy.js";
import { incomingSchema } from "./incoming.js";
import { normalizeSessionKey, sessionKeyFault } from "./run-terms.js";
import { webhooksSchema } from "./webhooks.js";

/** Whether a failed run may have an error code; `agent_failed` stands for errors of an agent without one. */
const isRunCode = (code: string) => code === "agent_failed" || Object.hasOwn(ERROR_CODES, code);

/** Schema of `channels.web`: who may call the service, and what becomes of runs. */
export function webSchema() {
  const { z } = loadZod();
  const flag = (value: boolean, meaning: string) => z.boolean().default(value).describe(meaning);
  const nonEmpty = z.string().min(1);

  const sessionKey = nonEmpty.check(({ value, issues }) => {
    const message = sessionKeyFault(normalizeSessionKey(value));
    if (message !== undefined) issues.push({ code: "custom", input: value, message });
  });

  const retries = z.strictObject({
    attempts: z
      .int()
      .min(1)
      .max(100)
      .default(3)
      .describe("Most attempts of a run whose error is transient, including the first; 1: no retry."),
    first_delay_seconds: z
      .number()
      .positive()
      .max(86_400)
      .default(5)
      .describe("Delay after the first attempt. It doubles after each attempt, with up to 25 % jitter."),
    longest_delay_seconds: z.number().positive().max(86_400).default(300).describe("Longest delay between attempts."),
    codes: z
      .array(z.string().refine(isRunCode, "expected agent_failed or a code of docs/errors.md"))
      .default([])
      .describe(
        "Error codes that are transient, beside errors with `retryable: true`; `agent_failed` is any error without a code.",
      ),
  });

  const access = z.enum(["open", "token", "none"]).default("open");
  const comfyAccess = z
    .union([z.enum(["open", "token", "none"]), z.boolean()], {
      error: 'expected "open", "token" (or true) or "none" (or false)',
    })
    .transform((value) => (typeof value === "string" ? value : value ? "token" : "none"))
    .default("none");

  return z.strictObject({
    hooks_token: z
      .unknown()
      .optional()
      .describe("The token, or a list of them for rotation. Blank or anything else: every hook endpoint returns 503."),
    hooks_default_session_key: sessionKey
      .optional()
      .describe("Session of runs that do not name one. Absent: each has its own, and wakes share `hook:ingress`."),
    hooks_allow_request_session_key: flag(false, "Whether a request may name its session."),
    hooks_allowed_session_key_prefixes: z
      .array(sessionKey)
      .optional()
      .describe("A session key must have one of these prefixes. Absent or empty: any key is allowed."),
    hooks_heartbeat_seconds: z
      .int()
      .nonnegative()
      .default(0)
      .describe("Interval of runs that take waiting events; 0: no such runs."),
    stream_auth: z
      .enum(["token", "signed", "none"])
      .default("token")
      .describe("What a client needs to read a stream: the token or a signed URL, a signed URL only, or nothing."),
    on_restart: z
      .enum(["interrupt", "requeue"])
      .default("interrupt")
      .describe(
        "What happens to runs that a restart interrupted, in a store of one process: they end as interrupted, or start again.",
      ),
    on_loss: z
      .enum(["requeue", "interrupt"])
      .default("requeue")
      .describe(
        "What happens to runs whose worker was lost, in PostgreSQL: they start again, once, or end as interrupted.",
      ),
    trust_proxy: flag(
      false,
      "Whether the last address of `X-Forwarded-For` is the client's. Only behind your own proxy.",
    ),
    incoming: incomingSchema()
      .default({})
      .describe("Senders that sign their requests instead of sending the token, by the name in `POST /hooks/in/NAME`."),
    webhooks: webhooksSchema().default({}).describe("Webhooks notified when runs end, keyed by name."),
    comfy_api: comfyAccess.describe(
      "Who may render their own graphs by the Comfy API v2 (`/api/v2`). `token` (or true): clients with the token. `open`: all clients, only on a loopback address. `none` (or false): the paths do not exist.",
    ),
    comfy_inputs: flag(
      false,
      "Whether jobs of the Comfy API v2 may have `inputs`, values for the parameters of their graph.",
    ),
    comfy_classic: comfyAccess.describe(
      "Who may render their own graphs by ComfyUI's classic API (`/prompt`, `/ws`); the same values.",
    ),
    retries: retries.default(() => retries.parse({})),
    public_url: z
      .url({ protocol: /^https?$/ })
      .transform(withoutSlashes)
      .optional()
      .describe("Public address of the service, used in webhooks and in `/api/v2`; absent: their addresses are paths."),
    allowed_origins: allowedOrigins()
      .default([])
      .describe(
        "Origins of pages that may call the service from a browser, such as `https://gallery.example.com`: hooks, the Comfy API and the classic one. If a token is needed, they need it too.",
      ),
    metrics: access.describe("Who may read `/metrics`; none: the path does not exist."),
    openapi: access.describe("Who may read `/openapi.json`; none: the path does not exist."),
  });
}

function withoutSlashes(url: string): string {
  let end = url.length;
  while (url[end - 1] === "/") end--;
  return url.slice(0, end);
}

const MOST_ORIGINS = 100;

/** Schema of a list of origins, each as a browser sends it: in lower case, without the scheme's default port. */
function allowedOrigins() {
  const { z } = loadZod();
  const origin = z.string().transform((text, { addIssue }) => {
    const origin = originOf(text);
    if (origin === undefined) {
      addIssue("expected an origin, scheme://host or scheme://host:port, such as https://gallery.example.com");
      return z.NEVER;
    }
    return origin;
  });
  return z.array(origin).max(MOST_ORIGINS);
}

/** Undefined for anything but an origin. */
function originOf(text: string): string | undefined {
  const [, scheme, host] = /^([a-z][a-z0-9+.-]*):\/\/([^\s/?#@\\*,]+)$/i.exec(text) ?? [];
  if (scheme === undefined || host === undefined || !URL.canParse(text)) return undefined;
  const { origin } = new URL(text);
  // a scheme that only browsers know, such as that of their extensions
  return origin === "null" ? text.toLowerCase() : origin;
}
