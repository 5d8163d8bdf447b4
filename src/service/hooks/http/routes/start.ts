import type { z } from "zod";
import { describe } from "../../../../base/errors.js";
import { loadZod } from "../../../../base/lazy.js";
import { suggest } from "../../../../base/suggest.js";
import type { RunGraph } from "../../../agent/agent.js";
import { asRefusal, HookError, type HookErrorKind } from "../../hook-error.js";
import { fileUrl, type RunFile, type RunStatus, type TerminalState } from "../../run.js";
import type { Idempotency, Started, StartRequest } from "../../runs/run-starter.js";
import { termsPayload } from "../../runs/terms.js";
import { arrivalLimits, type BodyLimits } from "../body.js";
import type { Call, Route } from "../call.js";
import type { HookContext } from "../context.js";
import { hashPayload, readAccept, waitSeconds, weightOf } from "../request-headers.js";
import { sendJson } from "../responses.js";
import { runPayload, runStatus, statusUrl } from "./payloads.js";
import { contentTypeOf, sendFile } from "./send-file.js";

/** Sender of a start, and what a repetition of its request gets. */
export interface StartedBy {
  /** The token or sender that the rates count. */
  readonly tokenId: string;
  readonly endpoint: Idempotency["endpoint"];
  readonly idempotencyKey: string | undefined;
  /** Whether message and graph are those of an earlier run, which no request brought for the agent to check. */
  readonly isUnchecked?: boolean;
}

/** Refusals of a start. */
export const OF_START = [
  "session_key_override_disabled",
  "session_key_prefix_denied",
  "idempotency_mismatch",
  "rate_limited",
  "queue_full",
  "shutting_down",
] as const satisfies readonly HookErrorKind[];

/** Responses of a start, which may wait for the end of its run. `others`: bodies where none is started. */
export function startAnswers(
  { schemas }: HookContext,
  ...others: z.ZodType[]
): Required<Pick<Route, "responses" | "refusals">> {
  const accepted = loadZod().z.union([schemas.runPayload, schemas.runStatus, ...others]);
  return {
    responses: {
      200: { description: "The run is accepted. With wait: it has succeeded.", json: accepted, type: "image/*" },
      202: { description: "With wait: the run goes on.", json: schemas.runPayload },
    },
    refusals: [...OF_START, "run_failed", "run_cancelled", "run_timed_out", "run_interrupted", "run_expired"],
  };
}

/** Limits of a body that may start a run. Fails with shutting_down. */
export function startBodyLimits({ runs, config, clock }: HookContext, maxBytes = config.limits.body_bytes): BodyLimits {
  if (runs.closing) throw new HookError("shutting_down");
  return { maxBytes, ...arrivalLimits(config.limits, clock) };
}

/** Starts a run, or finds the one of the same key, and responds with it. */
export async function respondToStart(
  context: HookContext,
  call: Call,
  start: StartRequest,
  { tokenId, endpoint, idempotencyKey: key, isUnchecked = false }: StartedBy,
): Promise<void> {
  const { message, graph, sessionKey } = start;
  const started = await context.runs.start(start, {
    idempotency: idempotencyOf(key, { tokenId, endpoint, payloadHash: hashPayload(payloadOf(start)) }),
    admit() {
      if (!isUnchecked) refuseMessage(context, message, graph);
      context.startRates.count(tokenId, sessionKey === undefined ? [] : [sessionKey]);
    },
  });
  await respond(context, call, started);
}

/** Scope of a request with a key; undefined without one. */
export const idempotencyOf = (key: string | undefined, scope: Omit<Idempotency, "key">): Idempotency | undefined =>
  key === undefined ? undefined : { key, ...scope };

/** Parts of a request that a repetition under the same key must have the same. */
const payloadOf = (start: StartRequest): unknown[] => {
  const { origin, message, name, sessionKey, graph } = start;
  return [origin, message, name, sessionKey, graph?.name, termsPayload(start)];
};

/** Throws invalid_request for a name that is none of the agent's graphs. */
export function namedGraph({ agent }: HookContext, name: string | null | undefined): RunGraph | undefined {
  if (name == null) return undefined;
  const graph = agent.graphs?.find(name);
  if (graph !== undefined) return graph;
  const names = agent.graphs?.names ?? [];
  const { hint } = suggest(name, names);
  const fault = `expected one of ${names.join(", ")}, received ${describe(name)}.${hint}`;
  throw new HookError("invalid_request", `graph: ${names.length === 0 ? "this agent has no graphs" : fault}`);
}

/** Throws invalid_request if the agent refuses the message. */
export const refuseMessage = ({ agent }: HookContext, message: string, graph: RunGraph | null | undefined): void =>
  asRefusal("invalid_request", () => agent.check?.(message, graph ?? undefined));

/** Responds with a started run or, where the client prefers to wait, with the run's result. */
async function respond(context: HookContext, call: Call, started: Started): Promise<void> {
  const { req, res } = call;
  const { runId } = started;
  const headers = { ...replayHeader(started), Location: statusUrl(req.baseUrl, runId) };
  const send = (status: number, more = {}) =>
    sendJson(req, res, { status, body: runPayload(context, req.baseUrl, started), headers: { ...headers, ...more } });
  const preferred = waitSeconds(req.headers.prefer?.toString());
  const seconds = Math.min(preferred ?? 0, context.config.limits.wait_seconds);
  if (seconds === 0) return send(200);
  const vary = { Vary: "Accept, Prefer" };
  const ended = await waitForEnd(context, res, runId, seconds);
  if (res.destroyed) return;
  if (ended === undefined) return send(202, vary);
  await sendEnded(context, call, ended, { ...headers, ...vary, "Preference-Applied": `wait=${seconds}` });
}

export const replayHeader = ({ replayed }: { replayed: boolean }): Record<string, string> =>
  replayed ? { "Idempotent-Replayed": "true" } : {};

const FAILED_RUNS: Readonly<Record<Exclude<TerminalState, "succeeded">, HookErrorKind>> = {
  failed: "run_failed",
  cancelled: "run_cancelled",
  timed_out: "run_timed_out",
  interrupted: "run_interrupted",
  expired: "run_expired",
};

// Whatever goes wrong while waiting, the response is the 202 of a run that goes on.
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
async function sendEnded(
  context: HookContext,
  call: Call,
  run: RunStatus,
  headers: Readonly<Record<string, string>>,
): Promise<void> {
  const { req, res } = call;
  if (run.state !== "succeeded") {
    throw new HookError(FAILED_RUNS[run.state as keyof typeof FAILED_RUNS], run.error?.error, { headers });
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
    const weight = type.startsWith("image/") ? weightOf(accepted, type) : 0;
    return weight > 0 && weight >= json;
  });
}

/** A text as a parameter of a header spells it (RFC 8187). */
const extendedValue = (text: string): string =>
  encodeURIComponent(text).replace(/['()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);

const typeOf = ({ contentType, path }: RunFile): string =>
  contentType === null ? contentTypeOf(path) : contentType.replace(/;.*/s, "").trim().toLowerCase();
