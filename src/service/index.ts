// The HTTP service as a library: a hardened HTTP server for the hook service.
import "../base/package.js"; // first: in a bundle it throws the sentence that says what to do

export { tracedAgent } from "./agent/traced-agent.js";
export { createLogger, type LoggerOptions } from "./log.js";
export type { StartOptions } from "./parts.js";
export { createServer, type ListeningServer, type ServerOptions } from "./server/server.js";
export { type RunningService, startService } from "./server/start.js";
