import type { Call } from "../http/call.js";
import type { HookContext } from "../http/context.js";

// decision 337
/**
 * Address of the router without a slash at its end: that of the configuration, else its path alone. A client's Host header
 * would lead whoever follows the address wherever that client likes.
 */
export const baseOf = ({ config }: HookContext, { req }: Pick<Call, "req">): string =>
  config.web.public_url ?? req.baseUrl;
