import { z } from "zod";
import { describe, LatentkitError, suggest } from "../errors.js";
import type { DeviceChoice } from "../tensor/device-choice.js";
import { normalizeSessionKey, sessionKeyFault } from "./session-key.js";

const count = (value: number) => z.int().positive().default(value);
const countOrOff = (value: number) => z.int().nonnegative().default(value);
const nonEmpty = z.string().min(1);
const path = nonEmpty;

const sessionKey = nonEmpty.check(({ value, issues }) => {
  const message = sessionKeyFault(normalizeSessionKey(value));
  if (message !== undefined) issues.push({ code: "custom", input: value, message });
});

const remoteImageApi = z.strictObject({
  base_url: z.url({ protocol: /^https?$/ }).default("https://api.stability.ai"),
  keys: z.array(z.strictObject({ name: nonEmpty, key: nonEmpty })).default([]),
});

const web = z.strictObject({
  /** A text or a list of them; blank or anything else counts as not configured, and every hook answers 503. */
  hooks_token: z.unknown().optional(),
  hooks_default_session_key: sessionKey.default("hook:ingress"),
  hooks_allow_request_session_key: z.boolean().default(false),
  /** Absent or empty: nothing is restricted. */
  hooks_allowed_session_key_prefixes: z.array(sessionKey).optional(),
  hooks_heartbeat_seconds: countOrOff(0),
  stream_auth: z.enum(["token", "signed", "none"]).default("token"),
  on_restart: z.enum(["interrupt", "requeue"]).default("interrupt"),
  trust_proxy: z.boolean().default(false),
  /** Access to /metrics and /openapi.json: open to all, with the token, or none: the path is not there. */
  metrics: z.enum(["open", "token", "none"]).default("open"),
  openapi: z.enum(["open", "token", "none"]).default("open"),
});

const limits = z.strictObject({
  body_bytes: count(262144),
  message_chars: count(131072),
  header_seconds: count(10),
  failed_auth_per_minute: count(20),
  starts_per_10s: count(1000),
  session_starts_per_10s: count(200),
  running: count(4),
  running_per_session: count(1),
  queued: countOrOff(1000),
  queued_per_session: countOrOff(100),
  pending_wakes: countOrOff(10000),
  pending_wakes_per_session: countOrOff(1000),
  pending_wake_bytes: count(67108864),
  pending_wake_bytes_per_session: count(4194304),
  run_seconds: count(600),
  queue_seconds: count(3600),
  streams: count(1000),
  streams_per_run: count(20),
  streams_bytes: count(67108864),
  slow_reader_bytes: count(1048576),
  slow_reader_seconds: count(30),
  retention_hours: count(24),
  retention_runs: count(10000),
  run_events: count(10000),
  run_bytes: count(16777216),
  idempotency_hours: count(24),
  drain_seconds: countOrOff(30),
});

/** The whole configuration of the command line and the service; every key has its default here. */
const configSchema = z.strictObject({
  host: nonEmpty.default("127.0.0.1"),
  port: z.int().min(0).max(65535).default(8188),
  store: z
    .string()
    .regex(/^(memory:|sqlite:.+|rediss?:\/\/.+)$/, "expected memory:, sqlite:FILE or redis://…")
    .default("sqlite:./latentkit.db"),
  /** Absent: the example graph of the package. */
  agent: z
    .union([z.strictObject({ graph: path, partial: z.boolean().optional() }), z.strictObject({ module: path })], {
      error: "expected { graph: FILE } or { module: FILE }",
    })
    .optional(),
  /** false: a graph is refused in which a node reaches the network or uses a key. */
  allow_network: z.boolean().default(true),
  models: z.array(path).default(["./models"]),
  output_dir: path.default("./out"),
  /** Where tensors are computed. */
  device: z
    .string()
    .regex(/^(auto|cpu|cuda:\d{1,3})$/, "expected auto, cpu or cuda:N")
    .default("auto")
    .transform((choice) => choice as DeviceChoice),
  remote_image_api: remoteImageApi.default(() => remoteImageApi.parse({})),
  channels: z.strictObject({ web: web.default(() => web.parse({})) }).default(() => ({ web: web.parse({}) })),
  limits: limits.default(() => limits.parse({})),
});

export type Config = z.output<typeof configSchema>;
/** A configuration before its defaults are filled in. */
export type ConfigInput = z.input<typeof configSchema>;

/**
 * Checks a configuration and fills in the defaults. `source` names it in messages ("latentkit.yaml").
 * Fails with config.invalid, which names the key, what was expected and, for a typo, the key that was meant.
 */
export function parseConfig(value: unknown, source: string): Config {
  const parsed = configSchema.safeParse(value ?? {});
  if (parsed.success) return parsed.data;
  const { issues } = parsed.error;
  // an unknown key is often the reason why a known one is missing
  const issue = issues.find(({ code }) => code === "unrecognized_keys") ?? issues[0]!;
  throw new LatentkitError("config.invalid", `${source}: ${issueText(issue, value)}`);
}

function issueText(issue: z.core.$ZodIssue, value: unknown): string {
  const at = issue.path.map(String).join(".");
  if (issue.code === "unrecognized_keys") {
    const key = issue.keys[0]!;
    const { hint } = suggest(key, keysAt(configSchema, issue.path), (near) => `"${near}"`);
    const shown = shownKey(key, [...issue.path, key], value);
    return `unknown key "${at === "" ? shown : `${at}.${shown}`}".${hint}`;
  }
  const wrong = valueAt(value, issue.path);
  const received = mayHoldSecret(issue.path) ? kindOf(wrong) : describe(hideSecrets(wrong));
  const expected = issue.message.replace(/^(Invalid input|Too small|Too big): /, "").replace(/, received .*/s, "");
  return `"${at}": ${expected}, received ${received}.`;
}

/** `{ key:secret }` and `{ secret }` are keys to YAML: what may be a secret by such a slip is left out. */
function shownKey(key: string, at: readonly PropertyKey[], config: unknown): string {
  if (mayHoldSecret(at.slice(0, -1)) && at.length > 1 && valueAt(config, at) === null) {
    return key.replace(/(?<![^:=\s])[^:=\s]+$/, "…");
  }
  return key.replace(/[:=\s].*/s, "…");
}

function valueAt(value: unknown, at: readonly PropertyKey[]): unknown {
  return at.reduce<unknown>((inner, key) => (inner as Record<PropertyKey, unknown> | undefined)?.[key], value);
}

/** Keys an object of the schema may hold at a path; none where it is no object. */
function keysAt(schema: z.core.$ZodType, at: readonly PropertyKey[]): string[] {
  let inner: z.core.$ZodType[] = [unwrap(schema)];
  for (const key of at) inner = inner.flatMap((type) => step(type, key));
  return inner.flatMap((type) => (type instanceof z.ZodObject ? Object.keys(type.shape) : []));
}

function step(schema: z.core.$ZodType, key: PropertyKey): z.core.$ZodType[] {
  if (schema instanceof z.ZodArray) return [unwrap(schema.element)];
  const next = schema instanceof z.ZodObject ? (schema.shape as Record<PropertyKey, z.core.$ZodType>)[key] : undefined;
  if (next === undefined) return [];
  const type = unwrap(next);
  return type instanceof z.ZodUnion ? type.options.map(unwrap) : [type];
}

function unwrap(schema: z.core.$ZodType): z.core.$ZodType {
  const isWrapper = schema instanceof z.ZodDefault || schema instanceof z.ZodOptional;
  return isWrapper ? unwrap(schema.unwrap()) : schema;
}

/** Dotted paths of all values an environment variable can set, with the type of each. */
export function configLeaves(schema: z.core.$ZodType = configSchema, at: string[] = []): [string[], z.core.$ZodType][] {
  const type = unwrap(schema);
  if (!(type instanceof z.ZodObject)) return [[at, type]];
  return Object.entries(type.shape as Record<string, z.core.$ZodType>).flatMap(([key, inner]) =>
    configLeaves(inner, [...at, key]),
  );
}

const SECRETS = [
  ["channels", "web", "hooks_token"],
  ["remote_image_api", "keys"],
];

/** Everything below a secret's key, but the names of the remote keys. */
const isSecret = (at: readonly PropertyKey[]) =>
  SECRETS.some((secret) => secret.every((key, depth) => at[depth] === key)) &&
  !(at.length === 4 && at[1] === "keys" && at[3] === "name");

/** Whether a secret stands at, below or, by mistake, above a path: `channels: { web: "the token" }`. */
const mayHoldSecret = (at: readonly PropertyKey[]) =>
  at.length === 0 || SECRETS.some((secret) => secret.every((key, depth) => depth >= at.length || at[depth] === key));

/** What a value is, without a letter of it. */
function kindOf(value: unknown): string {
  if (typeof value === "string") return `a text of ${value.length} characters`;
  const isPlain = typeof value !== "object" || value === null;
  return isPlain && value !== undefined && value !== null ? `a ${typeof value}` : describe(value);
}

/** A copy for printing: each secret shows as "set (32 chars)". @internal */
export function hideSecrets(config: unknown, at: readonly PropertyKey[] = []): unknown {
  const isScalar = typeof config !== "object" || config === null;
  if (isScalar && config !== undefined && isSecret(at)) return `set (${String(config).length} chars)`;
  if (typeof config === "string") return hidePassword(config);
  if (Array.isArray(config)) return config.map((item, index) => hideSecrets(item, [...at, index]));
  if (isScalar) return config;
  return Object.fromEntries(Object.entries(config).map(([key, value]) => [key, hideSecrets(value, [...at, key])]));
}

/** redis://user:password@host */
function hidePassword(text: string): string {
  return text.replace(/^(\w+:\/\/[^/@:]*:)([^@]*)@/, (_, before: string, secret: string) => {
    return `${before}set (${secret.length} chars)@`;
  });
}
