import { createHash } from "node:crypto";
import { isInNetworks, isPublicAddress } from "../../../io/http/public-address.js";
import type { HookConfig } from "../hook-config.js";
import type { TerminalState } from "../run.js";
import type { Receiver } from "../store/deliveries.js";
import { createSigner, type Signer } from "./signer.js";

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

// decision 318
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
