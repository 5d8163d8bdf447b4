import { hasMethods, type Rule } from "../../base/options.js";

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
