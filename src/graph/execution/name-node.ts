import { LatentkitError, where } from "../../errors.js";
import type { PreparedNode } from "../prepared.js";

/** A node's failure as a LatentkitError that names the node. */
export function nameNode(error: unknown, { id, definition }: PreparedNode): LatentkitError {
  const at = { nodeId: id, node: definition.key };
  if (!(error instanceof LatentkitError)) {
    const reason = error instanceof Error ? error.message : String(error);
    return new LatentkitError("node.failed", `${where(at).slice(0, -2)}: ${reason}`, at, { cause: error });
  }
  if (error.details.nodeId !== undefined) return error;
  const anonymous = where({ node: definition.key });
  const rest = error.message.startsWith(anonymous) ? error.message.slice(anonymous.length) : error.message;
  return new LatentkitError(error.code, where(at) + rest, { ...error.details, ...at }, { cause: error });
}
