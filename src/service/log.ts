import type { DestinationStream, Logger } from "pino";
import { loadPino } from "../base/lazy.js";
import { checkOptions, hasMethods, type OptionRules } from "../base/options.js";

const LEVELS = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;

// Logs carry names of routes, never paths or queries: neither token nor signature can end up there.
/** Options of `createLogger`: info to stderr if absent. */
export interface LoggerOptions {
  /** Least level that is logged. Default: info. */
  level?: (typeof LEVELS)[number];
  /** Where lines go. Default: stderr. */
  destination?: DestinationStream;
}

const LOGGER_RULES: OptionRules<LoggerOptions> = {
  level: [`one of ${LEVELS.join(", ")}`, (value) => LEVELS.some((level) => level === value)],
  destination: ["a stream with write", (value) => hasMethods(value, "write")],
};

/**
 * Creates a pino logger that never prints a token header, at any position up to two levels deep in an object.
 * Default: level info, to stderr, so that stdout carries results only.
 */
export function createLogger(options: LoggerOptions = {}): Logger {
  checkOptions("createLogger", options, LOGGER_RULES);
  const paths = TOKEN_HEADERS.flatMap((header) => {
    const key = `["${header}"]`;
    return [key, `*${key}`, `*.headers${key}`, `headers${key}`];
  });
  const { pino } = loadPino();
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

/** Headers with the bare token, besides `Authorization: Bearer`. */
export const BARE_TOKEN_HEADERS = ["x-compat-token", "x-service-hook-token"] as const;

/** Headers that may carry a token, which no log may show. */
export const TOKEN_HEADERS = ["authorization", ...BARE_TOKEN_HEADERS] as const;
