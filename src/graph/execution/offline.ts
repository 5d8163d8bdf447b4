import { LatentkitError } from "../../base/errors.js";
import type { FilesByName } from "../../io/files/input-text.js";
import { type NodeConfig, needsNetwork } from "../../nodes/define.js";
import type { PreparedNode } from "../prepared.js";
import { networkError } from "../validation/graph-error.js";

/** Throws network.forbidden for the first node that reaches the network or uses a key. */
export function refuseNetwork(nodes: Iterable<PreparedNode>, files: FilesByName | undefined): void {
  for (const { displayId, definition, values } of nodes) {
    if (!needsNetwork(definition, values, files)) continue;
    const at = { nodeId: displayId, node: definition.key };
    throw new LatentkitError("network.forbidden", networkError(at).sentence, at);
  }
}

/** `fetch` of an offline run, for nodes that reach the network without declaring it. */
export const refusedFetch: typeof fetch = async () => {
  throw new LatentkitError(
    "network.forbidden",
    "The network may not be reached (allowNetwork, allow_network, --offline).",
  );
};

/** Copy of the configuration without keys. */
export const withoutKeys = ({ remote_image_api: api, ...config }: NodeConfig): NodeConfig =>
  api === undefined ? config : { ...config, remote_image_api: { ...api, keys: [] } };
