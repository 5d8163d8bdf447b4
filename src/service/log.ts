import pino, { type DestinationStream, type Level, type Logger } from "pino";
import { checkOptions, hasMethods, type OptionRules } from "../options.js";

const SECRET_HEADERS = ["authorization", "x-compat-token", "x-service-hook-token"];

/** Options of `createLogger`: info to stderr where absent. */
export interface LoggerOptions {
  level?: Level | "silent";
  destination?: DestinationStream;
}

const LEVELS: readonly unknown[] = ["fatal", "error", "warn", "info", "debug", "trace", "silent"];

const LOGGER_RULES: OptionRules<LoggerOptions> = {
  level: [`one of ${LEVELS.join(", ")}`, (level) => LEVELS.includes(level)],
  destination: ["a stream with write", (value) => hasMethods(value, "write")],
};

/**
 * A pino logger that never prints the three token headers, wherever in an object up to two levels deep they stand.
 * Default: level info to stderr, so that stdout carries results only.
 */
export function createLogger(options: LoggerOptions = {}): Logger {
  checkOptions("createLogger", options, LOGGER_RULES);
  const paths = SECRET_HEADERS.flatMap((header) => {
    const key = `["${header}"]`;
    return [key, `*${key}`, `*.headers${key}`, `headers${key}`];
  });
  return pino(
    {
      level: options.level ?? "info",
      base: undefined,
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: { paths: [...new Set(paths)], censor: "[redacted]" },
    },
    options.destination ?? pino.destination({ fd: 2, sync: true }),
  );
}
