/** Where a command's words go: results to `out`, progress and complaints to `err`. */
export interface Terminal {
  out(text: string): void;
  err(text: string): void;
  /** Whether `err` is a terminal, on which a line can be drawn again. */
  readonly isTerminal: boolean;
  readonly columns: number;
  readonly color: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/**
 * The process's own streams. A reader that went away (`| head`) ends the process quietly, with that exit code; results
 * that cannot be written, as on a full disk, with a sentence and 1. Words on stderr decide nothing, nor does a terminal
 * that was closed.
 */
export function processTerminal(codeWhenClosed: number): Terminal {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(codeWhenClosed);
    // the terminal is gone; SIGHUP tells what to do
    if (error.code === "EIO") return;
    process.stderr.write(`latentkit: the output cannot be written (${error.code}).\n`);
    process.exit(1);
  });
  process.stderr.on("error", () => {});
  const { env } = process;
  const isTerminal = process.stderr.isTTY === true && env.TERM !== "dumb";
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    isTerminal,
    columns: process.stderr.columns ?? 80,
    // no-color.org: any value but the empty string
    color: isTerminal && (env.NO_COLOR ?? "") === "",
    env,
  };
}

export const red = (terminal: Terminal, text: string): string => (terminal.color ? `\x1b[31m${text}\x1b[39m` : text);
export const dim = (terminal: Terminal, text: string): string => (terminal.color ? `\x1b[2m${text}\x1b[22m` : text);

const escaped = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** Text of unknown origin on one line: all that would end it, or reach a terminal's controls, shown as escapes. */
export const oneLine = (text: string): string => text.replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, escaped);

/** Text of unknown origin for a terminal: its control characters, line breaks and tabs aside, shown as escapes. */
export const harmless = (text: string): string => text.replace(/[^\P{Cc}\n\t]/gu, escaped);
