import { type Config, type ConfigInput, parseConfig } from "../../render/config/config.js";
import { normalizeSessionKey } from "../../render/config/session-key.js";

export type Limits = Config["limits"];
type WebConfig = Config["channels"]["web"];
type WebInput = NonNullable<NonNullable<ConfigInput["channels"]>["web"]>;

/** Session keys that a request may run under. */
export interface SessionPolicy {
  readonly defaultKey: string;
  readonly isOverrideAllowed: boolean;
  /** Literal and case-sensitive; empty: nothing is restricted. */
  readonly prefixes: readonly string[];
}

/** Configuration of a hook service: the keys of `channels.web` and `limits`, all optional. */
export type HookConfigInput = Partial<
  Omit<WebConfig, "hooks_token" | "hooks_default_session_key" | "incoming" | "webhooks" | "retries">
> & {
  /** A string, or a list for rotation. Blank, or anything else: not configured. */
  readonly hooks_token?: unknown;
  readonly hooks_default_session_key?: string | null;
  readonly incoming?: WebInput["incoming"];
  readonly webhooks?: WebInput["webhooks"];
  readonly retries?: WebInput["retries"];
  readonly limits?: Partial<Limits>;
};

export interface HookConfig {
  readonly web: Omit<WebConfig, "hooks_token">;
  readonly limits: Limits;
  readonly sessions: SessionPolicy;
}

/** Fills in the defaults and drops the token. Fails with config.invalid, naming an unknown or wrong key. */
export function readHookConfig(input: HookConfigInput): HookConfig {
  const { hooks_token: _token, hooks_default_session_key: sessionKey, limits, ...rest } = input;
  const isBlank = sessionKey === null || (typeof sessionKey === "string" && sessionKey.trim() === "");
  const channel = isBlank ? rest : { ...rest, hooks_default_session_key: sessionKey };
  const parsed = parseConfig({ channels: { web: channel }, limits }, "createHookService");
  const { web } = parsed.channels;
  return {
    web,
    limits: parsed.limits,
    sessions: {
      defaultKey: normalizeSessionKey(web.hooks_default_session_key),
      isOverrideAllowed: web.hooks_allow_request_session_key,
      prefixes: (web.hooks_allowed_session_key_prefixes ?? []).map((prefix) => prefix.normalize("NFC")),
    },
  };
}
