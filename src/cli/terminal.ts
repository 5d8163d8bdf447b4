import { relative } from "node:path";
import { escapeControls, escapeWithinLines } from "../base/controls.js";

/** Exit code of what Ctrl-C has ended. */
export const INTERRUPTED = 130;

/** Empties the line of the cursor. */
export const EMPTY_LINE = "\r\x1b[2K";

export const BAR_WIDTH = 24;

/** The output of a command: results go to `out`, progress and errors to `err`. */
export interface Terminal {
  out(text: string): void;
  err(text: string): void;
  /** Standard input. */
  readonly input?: AsyncIterable<Buffer> & { destroy?(): void };
  /** Whether `err` is a terminal, on which a line can be redrawn. */
  readonly isTerminal: boolean;
  readonly columns: number;
  readonly color: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/**
 * The process's own streams. A reader that leaves (`| head`) ends the process quietly, with `codeWhenClosed`; results that
 * cannot be written, as on a full disk, end it with a sentence and exit code 1. A failed write to stderr or to a closed
 * terminal changes nothing.
 */
export function processTerminal(codeWhenClosed: number): Terminal {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(codeWhenClosed);
    // the terminal is gone; the handler of SIGHUP decides
    if (error.code === "EIO") return;
    process.stderr.write(`latentkit: Cannot write the output (${error.code}).\n`);
    process.exit(1);
  });
  process.stderr.on("error", () => {});
  const { env } = process;
  const isTerminal = process.stderr.isTTY === true && env.TERM !== "dumb";
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    // it is opened on first use
    get input() {
      return process.stdin;
    },
    isTerminal,
    columns: process.stderr.columns ?? 80,
    // no-color.org: any value but the empty string
    color: isTerminal && (env.NO_COLOR ?? "") === "",
    env,
  };
}

export const red = (terminal: Terminal, text: string): string => (terminal.color ? `\x1b[31m${text}\x1b[39m` : text);
const dim = (terminal: Terminal, text: string): string => (terminal.color ? `\x1b[2m${text}\x1b[22m` : text);

/** A bar of `BAR_WIDTH` characters, the first `filled` of them full. */
export const barOf = (terminal: Terminal, filled: number): string =>
  `${"█".repeat(filled)}${dim(terminal, "░".repeat(BAR_WIDTH - filled))}`;

/** Puts foreign text on one line: characters that control the terminal, hide or turn text, and line breaks, become escapes. */
export const oneLine = escapeControls;

/** Makes foreign text safe for a terminal: as oneLine, except for line breaks and tabs. */
export const harmless = escapeWithinLines;

/** The path as one would type it from here, on one line. */
export function shortest(path: string): string {
  const fromHere = relative(process.cwd(), path);
  return oneLine(fromHere.startsWith("..") ? path : fromHere);
}
