import pino, { type DestinationStream, type Level, type Logger } from "pino";

const SECRET_HEADERS = ["authorization", "x-compat-token", "x-service-hook-token"];

/**
 * A pino logger that never prints the three token headers, wherever in an object up to two levels deep they stand.
 * Default: level info to stderr, so that stdout carries results only.
 */
export function createLogger(options: { level?: Level | "silent"; destination?: DestinationStream } = {}): Logger {
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
