import { type Config, parseConfig } from "../../render/config/config.js";
import { normalizeSessionKey } from "../../render/config/session-key.js";
import type { SessionPolicy } from "./http/session-key.js";
import type { Limits } from "./types.js";

type WebConfig = Config["channels"]["web"];

/** What an embedder hands in: the keys of `channels.web` and `limits`, all optional. */
export type HookConfigInput = Partial<Omit<WebConfig, "hooks_token" | "hooks_default_session_key">> & {
  /** A string or a list, for rotation. Blank, or anything else: not configured. */
  readonly hooks_token?: unknown;
  readonly hooks_default_session_key?: string | null;
  readonly limits?: Partial<Limits>;
};

export interface HookConfig {
  readonly web: Omit<WebConfig, "hooks_token">;
  readonly limits: Limits;
  readonly sessions: SessionPolicy;
}

/** Fills in the defaults. Fails with config.invalid, naming an unknown or wrong key. The token is not kept. */
export function readHookConfig(input: HookConfigInput): HookConfig {
  const { hooks_token: _token, hooks_default_session_key: sessionKey, limits, ...rest } = input;
  const isBlank = sessionKey === null || (typeof sessionKey === "string" && sessionKey.trim() === "");
  const given = isBlank ? rest : { ...rest, hooks_default_session_key: sessionKey };
  const parsed = parseConfig({ channels: { web: given }, limits }, "createHookService");
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
