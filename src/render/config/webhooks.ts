import { isIP } from "node:net";
import { loadZod } from "../../base/lazy.js";
import { isInNetworks, isNetwork, isPublicAddress } from "../../io/http/public-address.js";
import { standardKey } from "./incoming.js";

/** Ends of a run that a webhook may report. */
export const WEBHOOK_STATES = ["succeeded", "failed", "cancelled", "timed_out", "interrupted", "expired"] as const;
const EVENTS = WEBHOOK_STATES.map((state) => `run.${state}` as const);

const MOST_ENDPOINTS = 100;
const MOST_SECRETS = 8;
const MOST_NETWORKS = 64;
/** Key lengths of Standard Webhooks: of HMAC in bytes; an ed25519 seed, alone or before its public key. */
const HMAC_BYTES = { least: 24, most: 64 };
const SEED_BYTES = [32, 64];

/** Key of one `whsec_` or `whsk_` secret; undefined for any other text. */
export function signingKey(secret: string): { readonly kind: "hmac" | "ed25519"; readonly bytes: Buffer } | undefined {
  if (secret.startsWith("whsec_")) {
    const bytes = standardKey(secret);
    const isRight = bytes !== undefined && bytes.length >= HMAC_BYTES.least && bytes.length <= HMAC_BYTES.most;
    return isRight ? { kind: "hmac", bytes } : undefined;
  }
  if (!secret.startsWith("whsk_")) return undefined;
  const bytes = standardKey(secret.slice("whsk_".length));
  return bytes !== undefined && SEED_BYTES.includes(bytes.length)
    ? { kind: "ed25519", bytes: bytes.subarray(0, 32) }
    : undefined;
}

/** Schema of `channels.web.webhooks`: endpoints notified when runs end, keyed by name. */
export function webhooksSchema() {
  const { z } = loadZod();
  const secret = z
    .string()
    .trim()
    .refine(
      (text) => signingKey(text) !== undefined,
      "expected whsec_ and 24 to 64 bytes, or whsk_ and 32 or 64, in base64",
    );
  const endpoint = z
    .strictObject({
      url: z
        .url({ protocol: /^https?$/ })
        .max(8192)
        .describe("Address that is posted to: `https:`, or `http:` into `allow_networks`."),
      secrets: z
        .union([secret, z.array(secret).min(1).max(MOST_SECRETS)], {
          error: `expected whsec_ or whsk_ and a key in base64, or a list of up to ${MOST_SECRETS}`,
        })
        .describe("`whsec_…` for HMAC or `whsk_…` for ed25519, or a list for rotation: each signs."),
      events: z
        .array(z.enum(EVENTS))
        .min(1)
        .default([...EVENTS])
        .describe("Events that are sent."),
      session_prefix: z.string().max(256).default("").describe("Prefix of the sessions whose runs are reported."),
      on_request: z
        .boolean()
        .default(false)
        .describe("Notified only of Comfy API v2 jobs that name its address as `webhook_url`."),
      allow_networks: z
        .array(z.string().refine(isNetwork, "expected an IP address or a network such as 10.0.0.0/8"))
        .max(MOST_NETWORKS)
        .default([])
        .describe("Addresses that may be connected to besides public ones, such as `10.0.0.0/8`."),
    })
    .check(({ value, issues }) => {
      const { protocol, hostname, username, password } = new URL(value.url);
      const fail = (message: string) => issues.push({ code: "custom", input: value.url, path: ["url"], message });
      const host = hostname.replace(/^\[|\]$/g, "");
      if (value.on_request && value.session_prefix !== "") {
        issues.push({
          code: "custom",
          input: value.session_prefix,
          path: ["session_prefix"],
          message: "expected no value with on_request",
        });
      }
      const isPrivate = isIP(host) !== 0 && !isPublicAddress(host) && !isInNetworks(value.allow_networks)(host);
      if (username !== "" || password !== "") fail("expected an address without a password");
      else if (protocol === "http:" && value.allow_networks.length === 0)
        fail("expected https: without allow_networks");
      else if (isPrivate) fail("expected a public address or one in allow_networks");
    });

  return z.record(z.string(), endpoint).check(({ value, issues }) => {
    const names = Object.keys(value);
    const wrong = names.find((name) => !/^[a-z0-9][a-z0-9_-]{0,63}$/.test(name));
    const fail = (message: string, path: string[]) => issues.push({ code: "custom", input: value, message, path });
    if (names.length > MOST_ENDPOINTS) fail(`expected at most ${MOST_ENDPOINTS} webhooks`, []);
    else if (wrong !== undefined) fail("expected a name of a-z, 0-9, - and _", [wrong]);
  });
}
