import { LatentkitError } from "../../base/errors.js";
import { loadZod } from "../../base/lazy.js";
import { isTag, PRIORITY, TAG_FAULT, TAGS } from "./run-terms.js";

/** Schemes by which senders sign their requests. */
const SIGNATURES = ["standard-webhooks", "github", "stripe", "slack"] as const;
export type SignatureScheme = (typeof SIGNATURES)[number];

/** Shorter secrets could be guessed from one signed request. */
const SHORTEST_SECRET = 16;
const MOST_SENDERS = 100;
const MOST_SECRETS = 8;
const MOST_ENTRIES = 64;
const MOST_CHARS = 16_384;

/** Key of a Standard Webhooks secret: base64 after `whsec_`, which may be left out; undefined for any other text. */
export function standardKey(secret: string): Buffer | undefined {
  const text = secret.startsWith("whsec_") ? secret.slice("whsec_".length) : secret;
  const key = Buffer.from(text, "base64");
  const unpadded = (base64: string) => base64.split("=")[0];
  return key.length > 0 && unpadded(key.toString("base64")) === unpadded(text) ? key : undefined;
}

/** Schema of `channels.web.incoming`: senders that sign their requests, by the name in their path. */
export function incomingSchema() {
  const { z } = loadZod();
  const text = z.string().min(1).max(MOST_CHARS);
  const template = text.check(({ value, issues }) => {
    const message = faultOf(() => parseTemplate(value));
    if (message !== undefined) issues.push({ code: "custom", input: value, message });
  });
  const secret = z.string().trim().min(SHORTEST_SECRET);
  const hasItsDigits = (value: unknown) => !Number.isInteger(value) || Number.isSafeInteger(value);
  const IN_QUOTES = "expected a whole number beyond 2^53 in quotes, since it loses digits without";
  const scalar = z.union([z.string(), z.number(), z.boolean()]).refine(hasItsDigits, IN_QUOTES);
  const entries = <T extends Parameters<typeof z.record>[1]>(value: T) =>
    z.record(z.string(), value).refine((record) => Object.keys(record).length <= MOST_ENTRIES, {
      error: `expected at most ${MOST_ENTRIES} entries`,
    });
  const conditions = entries(z.union([scalar, z.array(scalar).max(MOST_ENTRIES)])).check(({ value, issues }) => {
    for (const key of Object.keys(value)) {
      const message = faultOf(() => parseReference(key));
      if (message !== undefined) issues.push({ code: "custom", input: value, message });
    }
  });

  const sender = z
    .strictObject({
      signature: z.enum(SIGNATURES).describe("Scheme by which the sender signs."),
      secrets: z
        .union([secret, z.array(secret).min(1).max(MOST_SECRETS)], {
          error: `expected a text of at least ${SHORTEST_SECRET} characters, or a list of up to ${MOST_SECRETS}`,
        })
        .describe("The secret shared with the sender, or a list of them for rotation."),
      replay_seconds: z
        .int()
        .positive()
        .max(86_400)
        .default(300)
        .describe("Difference allowed between the signed time and the clock. `github` signs no time."),
      when: conditions
        .optional()
        .describe(
          "Values that JSON pointers or headers must have: one, or one of a list. Any other request is acknowledged and ignored.",
        ),
      message: template.optional().describe("Template of the run's message."),
      placeholders: entries(z.union([template, z.number(), z.boolean()]).refine(hasItsDigits, IN_QUOTES))
        .optional()
        .describe("Templates of the graph's placeholders, by their keys, including `message`."),
      session_key: template
        .optional()
        .describe(
          "Template of the session's key; the allowed prefixes apply. Absent: `hooks_default_session_key`, or a session for each run.",
        ),
      idempotency_key: template
        .optional()
        .describe(
          "Template of the key under which a delivery starts one run. Absent: the sender's id of the delivery.",
        ),
      name: template.optional().describe("Template of the sender's name."),
      priority: z
        .int()
        .min(PRIORITY.least)
        .max(PRIORITY.most)
        .default(0)
        .describe("Priority of the runs: higher ones start first, across sessions."),
      tags: z
        .array(z.string().refine(isTag, TAG_FAULT))
        .max(TAGS.most)
        .default([])
        .describe("Tags of the runs, which a list can filter by."),
    })
    .check(({ value, issues }) => {
      if (value.message === undefined && value.placeholders === undefined) {
        issues.push({ code: "custom", input: value, message: "expected message or placeholders" });
      }
      if (value.signature !== "standard-webhooks") return;
      if ([value.secrets].flat().every((secret) => standardKey(secret) !== undefined)) return;
      issues.push({ code: "custom", input: value, path: ["secrets"], message: "expected base64, as in whsec_…" });
    });

  return z.record(z.string(), sender).check(({ value, issues }) => {
    const names = Object.keys(value);
    const wrong = names.find((name) => !/^[a-z0-9][a-z0-9_-]{0,63}$/.test(name));
    const fail = (message: string, path: string[]) => issues.push({ code: "custom", input: value, message, path });
    if (names.length > MOST_SENDERS) fail(`expected at most ${MOST_SENDERS} senders`, []);
    else if (wrong !== undefined) fail("expected a name of a-z, 0-9, - and _", [wrong]);
  });
}

function faultOf(parse: () => unknown): string | undefined {
  try {
    parse();
  } catch (error) {
    if (error instanceof LatentkitError) return error.message;
    throw error;
  }
}

const MOST_REFERENCES = 32;

/** A value of a signed request: by its JSON pointer (RFC 6901), as keys, or by the name of a header in lower case. */
export type Reference = { readonly pointer: readonly string[] } | { readonly header: string };

/** Pieces of a template, in order: texts as they are, and references. */
export type Template = readonly (string | (Reference & { readonly written: string }))[];

/**
 * Reads a template: a text with references in double braces, as `{{/repository/name}}` and `{{X-GitHub-Event}}`. `{{}}` is
 * the whole payload. Fails with config.invalid.
 */
export function parseTemplate(text: string): Template {
  const [first = "", ...rest] = text.split("{{", MOST_REFERENCES + 2);
  if (rest.length > MOST_REFERENCES) throw invalid(`expected at most ${MOST_REFERENCES} references`);
  const pieces: Template[number][] = [first];
  for (const piece of rest) {
    const end = piece.indexOf("}}");
    if (end < 0) throw invalid(`expected }} after ${JSON.stringify(`{{${piece.slice(0, 40)}`)}`);
    const written = piece.slice(0, end).trim();
    pieces.push({ ...parseReference(written), written }, piece.slice(end + 2));
  }
  return pieces.filter((piece) => piece !== "");
}

/** Reads the text between the braces. Fails with config.invalid. */
export function parseReference(written: string): Reference {
  if (written === "") return { pointer: [] };
  if (!written.startsWith("/")) {
    if (/^[A-Za-z][A-Za-z0-9-]{0,63}$/.test(written)) return { header: written.toLowerCase() };
    throw invalid(
      `expected a JSON pointer such as /action or a header's name, not ${JSON.stringify(written.slice(0, 40))}`,
    );
  }
  if (/~(?![01])/.test(written)) throw invalid("expected ~0 for ~ and ~1 for / in the keys of a JSON pointer");
  const keys = written.slice(1).split("/");
  return { pointer: keys.map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~")) };
}

const invalid = (sentence: string) => new LatentkitError("config.invalid", sentence);
