import type { z } from "zod";
import { describe } from "../../../base/errors.js";
import { loadZod } from "../../../base/lazy.js";
import { expectedBy } from "../../../render/config/config.js";
import {
  isTag,
  MAX_SESSION_KEY_CHARS,
  normalizeSessionKey,
  PRIORITY,
  sessionKeyFault,
  TAG_FAULT,
  TAGS,
} from "../../../render/config/run-terms.js";
import type { Limits, SessionPolicy } from "../hook-config.js";
import { HookError, REFUSALS } from "../hook-error.js";
import { maxRunSeconds, type Terms } from "../runs/terms.js";
import { IDEMPOTENCY_KEY } from "./request-headers.js";

const MAX_NAME_CHARS = 200;
/** Most runs of a group. */
const mostItems = ({ queued }: Limits): number => Math.min(1000, queued);

/** Schemas of request bodies. Unknown fields are dropped. */
export function requestSchemas(limits: Limits) {
  const { z } = loadZod();
  const prompt = z
    .string({ error: (issue) => (issue.input === undefined ? "is required" : "expected a string") })
    .max(limits.message_chars, `expected at most ${limits.message_chars} characters`)
    .refine((text) => text.trim() !== "", "expected more than blanks")
    .refine(isWellFormed, "lone surrogates are not text");
  const sessionKey = z
    .string("expected a string")
    .nullish()
    .meta({
      description: `Session to run in, where the configuration lets requests choose. At most ${MAX_SESSION_KEY_CHARS} characters, no control characters.`,
    });
  const integer = (least: number, most: number) =>
    z
      .int("expected an integer")
      .min(least, `expected ${least} or more`)
      .max(most, `expected at most ${most}`)
      .nullish();
  const shortText = z.string("expected a string").max(MAX_NAME_CHARS, `expected at most ${MAX_NAME_CHARS} characters`);
  const name = shortText
    .refine(isWellFormed, "lone surrogates are not text")
    .nullish()
    .meta({ description: "Name of the sender." });
  const common = {
    sessionKey,
    session_key: sessionKey.meta({ description: "Another spelling of sessionKey." }),
    idempotencyKey: z
      .string("expected a string")
      .regex(IDEMPOTENCY_KEY, "expected 1 to 255 visible ASCII characters")
      .nullish()
      .meta({ description: "Used where neither the header Idempotency-Key nor webhook-id is sent." }),
    timeoutSeconds: integer(1, maxRunSeconds(limits)).meta({
      description: `Longest run time; default ${limits.run_seconds}.`,
    }),
  };
  const { least, most } = PRIORITY;
  const { delay_seconds: longest } = limits;
  const turn = {
    priority: integer(least, most).meta({
      description: "Runs of a higher priority start first; those of one session stay in order. Default: 0.",
    }),
    delaySeconds: integer(0, longest).meta({
      description: "Time before which the run does not start. Later runs of its session wait too.",
    }),
    deadlineSeconds: integer(1, longest).meta({
      description: "Time from the request after which a run that has not ended is ended. Above delaySeconds.",
    }),
    tags: z
      .array(z.unknown().refine(isTag, TAG_FAULT).meta({ type: "string" }), "expected a list of texts")
      .max(TAGS.most, `expected at most ${TAGS.most}`)
      .nullish()
      .meta({ description: `Texts by which a list finds the run, of 1 to ${TAGS.chars} characters.` }),
  };
  const graph = shortText.nullish().meta({ description: "Name of the graph to render, one of /api/graphs." });
  const message = prompt.meta({ description: "The prompt for the run." });
  const { idempotencyKey, ...rest } = common;
  const defaults = z.object({ name, graph, ...rest, ...turn });
  // items are checked one by one: a list of a million wrong ones would have a million faults
  const group = z.object({
    items: z
      .array(z.unknown(), { error: (issue) => (issue.input === undefined ? "is required" : "expected a list") })
      .min(1, "expected at least 1")
      .max(mostItems(limits), `expected at most ${mostItems(limits)}`),
    defaults: defaults.nullish().meta({ description: "Fields of the items that lack them." }),
    idempotencyKey,
  });
  // A group has one key: an item's own could name a run of an earlier request.
  const groupItem = defaults
    .extend({
      message,
      idempotencyKey: z
        .null("not supported in an item: send one key for the request")
        .optional()
        .meta({ description: "Not supported: the request has one key." }),
    })
    .meta({ id: "GroupItem" });
  return {
    group,
    groupItem,
    describedGroup: group
      .extend({ items: z.array(groupItem).min(1).max(mostItems(limits)) })
      .meta({ id: "GroupRequest" }),
    agent: z.object({ message, name, graph, ...common, ...turn }).meta({ id: "AgentRequest" }),
    again: z
      .object({
        message: prompt.nullish().meta({ description: "Another prompt; absent: that of the earlier run." }),
        name,
        graph: graph.meta({ description: "Name of another graph; absent: that of the earlier run, as it was." }),
        ...common,
        ...turn,
      })
      .meta({ id: "AgainRequest" }),
    wake: z
      .object({
        text: prompt.meta({ description: "The wake text." }),
        mode: z
          .enum(["now", "next-heartbeat"], "expected now or next-heartbeat")
          .nullish()
          .meta({ description: "now (default): start a run. next-heartbeat: queue a system event for the next one." }),
        ...common,
      })
      .meta({ id: "WakeRequest" }),
  };
}

/** Queries and headers that several routes read. Routes read them as texts; these describe them. */
export function parameters({ wait_seconds }: Limits) {
  const { z } = loadZod();
  const text = (description: string) => z.string().optional().meta({ description });
  const number = (description: string) => z.int().optional().meta({ description });
  return {
    runId: { run_id: z.uuid().meta({ description: "Id of the run." }) },
    page: {
      cursor: text("next_cursor of the previous page."),
      limit: number("Entries of the page. Default 50, at most 200."),
    },
    signed: { expires: number("Part of a signed URL."), signature: text("Part of a signed URL.") },
    after: { last_event_id: number("Events after this id; absent or -1: all.") },
    resume: { "Last-Event-ID": text("Takes precedence over last_event_id; 204 at the end of what has ended.") },
    key: { "Idempotency-Key": text("A repeated request with the same key gets the first one's response.") },
    wait: {
      Prefer: text(`wait=SECONDS: respond when the run has ended; ${wait_seconds} at most.`),
      Accept: text("With wait, image/*: respond with the run's first picture."),
    },
  };
}

export type Parameters = ReturnType<typeof parameters>;
export type RequestSchemas = ReturnType<typeof requestSchemas>;

/** The terms in a body, without those that are absent or null. */
export const termsFrom = ({ timeoutSeconds, priority, delaySeconds, deadlineSeconds, tags }: Nullable<Terms>): Terms =>
  Object.fromEntries(
    Object.entries({ timeoutSeconds, priority, delaySeconds, deadlineSeconds, tags }).filter(
      ([, term]) => term != null,
    ),
  );

type Nullable<T> = { readonly [K in keyof T]: T[K] | null };

/** Checks a body. Fails with invalid_request, naming the field and what was expected, never the value. */
export function parseBody<T extends z.ZodType>(schema: T, body: unknown): z.output<T> {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0]!;
  const at = issue.path.join(".");
  throw new HookError("invalid_request", at === "" ? "expected a JSON object" : `${at}: ${expectedBy(issue)}`);
}

// lib es2023 has no String.isWellFormed
const isWellFormed = (text: string) => !/\p{Cs}/u.test(text);

/** Most prefixes that a refusal lists. */
const LISTED_PREFIXES = 5;

/**
 * Session key of a request, undefined where it names none. Both spellings of the field count; null and blank are absent.
 * Fails: session_key_override_disabled, session_key_prefix_denied, invalid_request.
 */
export function requestedSessionKey(
  policy: SessionPolicy,
  body: { sessionKey?: string | null; session_key?: string | null },
): string | undefined {
  const fields = (["sessionKey", "session_key"] as const).flatMap((field) => {
    const key = normalizeSessionKey(body[field] ?? "");
    return key === "" ? [] : [{ field, key }];
  });
  const [first] = fields;
  if (first === undefined) return undefined;
  if (!policy.isOverrideAllowed) {
    throw refusal("session_key_override_disabled", `"${first.field}" needs hooks_allow_request_session_key: true`);
  }
  if (fields.some(({ key }) => key !== first.key))
    throw new HookError("invalid_request", "sessionKey and session_key differ");
  return checkSessionKey(policy, first.key, first.field);
}

// Templates need no hooks_allow_request_session_key; the prefixes hold, since parts of a key may be a stranger's text.
/** Session key from a sender's template, undefined where it is absent or blank. Fails as `requestedSessionKey` does. */
export function mappedSessionKey(policy: SessionPolicy, mapped: string | undefined): string | undefined {
  const key = normalizeSessionKey(mapped ?? "");
  return key === "" ? undefined : checkSessionKey(policy, key, "session_key");
}

function checkSessionKey({ prefixes }: SessionPolicy, key: string, field: string): string {
  const fault = sessionKeyFault(key);
  if (fault !== undefined) throw new HookError("invalid_request", `${field}: ${fault}`);
  const isAllowed = prefixes.length === 0 || prefixes.some((prefix) => key.startsWith(prefix));
  if (isAllowed) return key;
  const listed = prefixes.slice(0, LISTED_PREFIXES).map((prefix) => describe(prefix));
  const allowed = listed.join(", ") + (prefixes.length > LISTED_PREFIXES ? " and others" : "");
  throw refusal(
    "session_key_prefix_denied",
    `"${field}" must begin with one of hooks_allowed_session_key_prefixes, ${allowed}`,
  );
}

/** The refusal's own sentence, which clients may look for, and the key of the configuration that decides. */
const refusal = (kind: "session_key_override_disabled" | "session_key_prefix_denied", why: string): HookError =>
  new HookError(kind, `${REFUSALS[kind].sentence}: ${why} (channels.web of the configuration)`);
