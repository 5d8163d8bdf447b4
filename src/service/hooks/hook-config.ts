import { hasMethods, type Rule } from "../../base/options.js";
import { type Config, type ConfigInput, type Frame, parseConfig } from "../../render/config/config.js";
import { normalizeSessionKey } from "../../render/config/run-terms.js";

export type Limits = Config["limits"];
type WebConfig = Config["channels"]["web"];
type WebInput = NonNullable<NonNullable<ConfigInput["channels"]>["web"]>;

/** Session of wakes where the configuration has no default. */
const HOOK_SESSION = "hook:ingress";

// decisions: Runs without a session do not wait for each other
/** Session keys that a request may run under. */
export interface SessionPolicy {
  /** Session of a run whose request names none; undefined: one of its own. */
  readonly defaultKey: string | undefined;
  /** Session of a wake whose request names none: its events wait for a later run of it. */
  readonly wakeKey: string;
  readonly isOverrideAllowed: boolean;
  /** Literal and case-sensitive; empty: nothing is restricted. */
  readonly prefixes: readonly string[];
}

/** Configuration of a hook service: the keys of `channels.web` and `limits`, all optional. */
export type HookConfigInput = Partial<
  Omit<
    WebConfig,
    "hooks_token" | "hooks_default_session_key" | "incoming" | "webhooks" | "retries" | "comfy_api" | "comfy_classic"
  >
> & {
  /** A string, or a list for rotation. Blank, or anything else: not configured. */
  readonly hooks_token?: unknown;
  readonly hooks_default_session_key?: string | null;
  readonly incoming?: WebInput["incoming"];
  readonly webhooks?: WebInput["webhooks"];
  readonly retries?: WebInput["retries"];
  readonly comfy_api?: WebInput["comfy_api"];
  readonly comfy_classic?: WebInput["comfy_classic"];
  readonly limits?: Partial<Limits>;
};

export interface HookConfig {
  readonly web: Omit<WebConfig, "hooks_token">;
  readonly limits: Limits;
  readonly sessions: SessionPolicy;
}

/** Keys of `channels.web` stand beside `limits` here. */
const inProgram: Frame = (path) => {
  if (path[0] === "limits") return path;
  return path[0] === "channels" && path[1] === "web" ? path.slice(2) : undefined;
};

/** Fills in the defaults and drops the token. Fails with config.invalid, naming an unknown or wrong key. */
export function readHookConfig(input: HookConfigInput): HookConfig {
  const { hooks_token: _token, hooks_default_session_key: sessionKey, limits, ...rest } = input;
  const isBlank = sessionKey === null || (typeof sessionKey === "string" && sessionKey.trim() === "");
  const channel = isBlank ? rest : { ...rest, hooks_default_session_key: sessionKey };
  const parsed = parseConfig({ channels: { web: channel }, limits }, "createHookService", inProgram);
  const { web } = parsed.channels;
  const key = web.hooks_default_session_key;
  const defaultKey = key === undefined ? undefined : normalizeSessionKey(key);
  return {
    web,
    limits: parsed.limits,
    sessions: {
      defaultKey,
      wakeKey: defaultKey ?? HOOK_SESSION,
      isOverrideAllowed: web.hooks_allow_request_session_key,
      prefixes: (web.hooks_allowed_session_key_prefixes ?? []).map((prefix) => prefix.normalize("NFC")),
    },
  };
}

/** The part of a pino logger that the service uses. It never receives a header, a token, a URL's query or a message. */
export interface HookLog {
  debug(facts: object, message: string): void;
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
  error(facts: object, message: string): void;
}

export const LOGGER: Rule = [
  "a logger with debug, info, warn and error",
  (value) => hasMethods(value, "debug", "info", "warn", "error"),
];
