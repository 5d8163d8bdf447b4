import { createHash, createHmac, createPrivateKey, sign } from "node:crypto";
import { isInNetworks, isPublicAddress } from "../../../io/http/public-address.js";
import { signingKey } from "../../../render/config/webhooks.js";
import type { HookConfig } from "../hook-config.js";
import type { TerminalState } from "../run.js";
import type { Receiver } from "../store/deliveries.js";

/** A configured webhook. */
export interface Endpoint extends Receiver {
  readonly url: URL;
  readonly sign: Signer;
  readonly events: ReadonlySet<string>;
  /** Whether an IP address may be connected to. */
  readonly isAllowed: (ip: string) => boolean;
}

export function createEndpoints(webhooks: HookConfig["web"]["webhooks"]): Endpoint[] {
  return Object.entries(webhooks).map(([name, config]) => {
    const url = new URL(config.url);
    const isInside = isInNetworks(config.allow_networks);
    return {
      endpoint: name,
      target: createHash("sha256").update(url.href).digest("hex").slice(0, 32),
      sessionPrefix: config.on_request ? requestedSession(name) : config.session_prefix.normalize("NFC"),
      url,
      sign: createSigner([config.secrets].flat()),
      events: new Set<string>(config.events),
      // without TLS nothing leaves the own networks
      isAllowed: url.protocol === "https:" ? (ip) => isPublicAddress(ip) || isInside(ip) : isInside,
    };
  });
}

// decisions: A webhook address comes from the configuration only
/** Beginning of the sessions whose runs have asked for a webhook. */
const requestedSession = (name: string): string => `comfy:${name}:`;

/** Beginnings of the sessions of jobs that ask for a webhook, by its address. */
export const requestedSessions = (webhooks: HookConfig["web"]["webhooks"]): ReadonlyMap<string, string> =>
  new Map(
    Object.entries(webhooks)
      .filter(([, { on_request }]) => on_request)
      .map(([name, { url }]) => [new URL(url).href, requestedSession(name)]),
  );

/** Name of the event of a run's end. */
export const eventOf = (state: TerminalState): string => `run.${state}`;

/** Endpoints that are told of runs that end in a state. */
export const receiversOfEnd = (endpoints: readonly Endpoint[], state: TerminalState): Receiver[] =>
  endpoints
    .filter(({ events }) => events.has(eventOf(state)))
    .map(({ endpoint, target, sessionPrefix }) => ({ endpoint, target, sessionPrefix }));

/** Returns the header `webhook-signature` of a message, with a signature for each secret. */
type Signer = (id: string, seconds: number, body: string) => string;

/** DER of an ed25519 private key (RFC 8410), up to its seed. */
const PKCS8 = Buffer.from("302e020100300506032b657004220420", "hex");

/** Signs by Standard Webhooks: `v1` for `whsec_` secrets, `v1a` for `whsk_` keys. @internal */
export function createSigner(secrets: readonly string[]): Signer {
  const signers = secrets.map(signatureBy);
  return (id, seconds, body) => {
    const signed = Buffer.from(`${id}.${seconds}.${body}`);
    return signers.map((signature) => signature(signed)).join(" ");
  };
}

function signatureBy(secret: string): (signed: Buffer) => string {
  const { kind, bytes } = signingKey(secret)!;
  if (kind === "hmac") return (signed) => `v1,${createHmac("sha256", bytes).update(signed).digest("base64")}`;
  const key = createPrivateKey({ key: Buffer.concat([PKCS8, bytes]), format: "der", type: "pkcs8" });
  return (signed) => `v1a,${sign(null, signed, key).toString("base64")}`;
}
