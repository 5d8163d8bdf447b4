import { loadZod } from "../../../../base/lazy.js";
import { parseJson } from "../../../../io/json/lossless.js";
import { asRefusal, HookError } from "../../hook-error.js";
import { createSender, type SenderConfig } from "../../incoming/sender.js";
import { SignatureFault } from "../../incoming/signatures.js";
import type { StartRequest } from "../../runs/run-starter.js";
import { decodeBody, decodeJson, isForm, readBodyBytes } from "../body.js";
import type { Call, Route } from "../call.js";
import type { HookContext } from "../context.js";
import { countFailure } from "../gate.js";
import { checkIdempotencyKey, traceparentOf } from "../request-headers.js";
import { mappedSessionKey, parseBody } from "../request-schemas.js";
import { sendJson } from "../responses.js";
import { respondToStart, startAnswers, startBodyLimits } from "./start.js";

// Payloads are read by parseJson, so that a seed keeps its digits.
// decisions: A sender that signs has a path of its own; A sender that signs has a path of its own
/** A route for each configured sender. */
export function incomingRoutes(context: HookContext): Route[] {
  const any = loadZod().z.looseObject({});
  return Object.entries(context.config.web.incoming).map(([name, config]) => ({
    name: `in/${name}`,
    operation: `in_${name}`,
    paths: [`/hooks/in/${name}`, `/api/hooks/in/${name}`],
    access: "sender",
    method: "POST",
    summary: `Start a run from a delivery that its sender has signed (${config.signature})`,
    section: "senders-that-sign",
    headers: context.parameters.wait,
    body: { schema: any, type: ["application/json", "application/x-www-form-urlencoded"] },
    // a trial request is answered, and one that no rule wants is acknowledged
    ...startAnswers(context, any),
    handle: incomingHandler(context, name, config),
  }));
}

function incomingHandler(context: HookContext, name: string, senderConfig: SenderConfig) {
  const { config, schemas, clock } = context;
  const sender = createSender(senderConfig);
  return async (call: Call) => {
    const { req, res } = call;
    const limits = { ...startBodyLimits(context), takesForms: true };
    const claim = orRefuse(context, req, () => sender.claim(req.headers, clock.now()));
    const bytes = await readBodyBytes(req, res, limits);
    if (!claim.holdsFor(bytes)) throw countFailure(context, req, "the signature is not that of the body");
    const request = { headers: req.headers, payload: readPayload(req, bytes) };
    const trial = sender.trial(request);
    if (trial !== undefined) return sendJson(req, res, { status: 200, body: trial });
    const unmet = sender.unmet(request);
    // an acknowledgement: senders repeat what is refused
    if (unmet !== undefined) return sendJson(req, res, { status: 202, body: { ok: true, status: "ignored", unmet } });
    const mapped = sender.map(request, config.limits.message_chars);
    const body = parseBody(schemas.agent, { message: mapped.message, name: mapped.name });
    const { idempotencyKey: key } = mapped;
    const start: StartRequest = {
      origin: "agent",
      message: body.message,
      name: body.name?.trim() || undefined,
      sessionKey: mappedSessionKey(config.sessions, mapped.sessionKey) ?? config.sessions.defaultKey,
      traceparent: traceparentOf(req),
      priority: senderConfig.priority,
      tags: senderConfig.tags,
    };
    const idempotencyKey = key === undefined ? undefined : checkIdempotencyKey(key);
    await respondToStart(context, call, start, { tokenId: `in/${name}`, endpoint: `in/${name}`, idempotencyKey });
  };
}

function orRefuse<T>(context: HookContext, req: Call["req"], check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (error instanceof SignatureFault) throw countFailure(context, req, error.message);
    throw error;
  }
}

/** The payload of a form is an object of its fields, or the JSON in its one field "payload". */
function readPayload(req: Call["req"], bytes: Buffer): unknown {
  const text = isForm(req) ? decodeBody(bytes) : decodeJson(bytes);
  // what is wrong quotes the body, to the sender who signed it
  const parse = (json: string, what: string) =>
    asRefusal("invalid_request", () => parseJson(json, { what, nonFinite: true }));
  if (!isForm(req)) return parse(text, "the body");
  const fields = [...new URLSearchParams(text)];
  const [field] = fields;
  if (fields.length === 1 && field![0] === "payload") return parse(field![1], "the field payload");
  // a map first: of equal names, the last one would win
  if (new Map(fields).size === fields.length) return Object.fromEntries(fields);
  throw new HookError("invalid_request", "the form has a field more than once");
}
