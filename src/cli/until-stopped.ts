import type { RunningService } from "../service/server/start.js";
import type { Arguments } from "./table/arguments.js";
import type { Terminal } from "./terminal.js";

/** A service or worker, as far as its command ends it. */
type Stoppable = Pick<RunningService, "fault" | "crash" | "close">;

const EXIT_DELAY_MS = 500;

/** Lines of a command that runs until it is stopped: for people with neither --quiet, for programs with --json. */
export const linesOf = (args: Arguments<{ readonly quiet: boolean; readonly json: boolean }>, terminal: Terminal) => ({
  print: (text: string) => (args.get("quiet") ? undefined : terminal.err(text)),
  emit: (event: object) => (args.get("json") ? terminal.out(`${JSON.stringify(event)}\n`) : undefined),
});

/**
 * Waits for a signal or an error that nothing catches, then closes the process's part, which has `drainSeconds` for its
 * running runs. Returns the exit code.
 */
export async function untilStopped(
  part: Stoppable,
  terminal: Terminal,
  signal: AbortSignal,
  drainSeconds: number,
  { print, emit }: ReturnType<typeof linesOf>,
): Promise<number> {
  // a rejected promise that an agent forgot must not end the runs of others
  const onRejection = (reason: unknown) => part.fault("unhandled rejection", reason);
  process.on("unhandledRejection", onRejection);
  // the state after an uncaught error is unknown: the other runs may end, then the process does
  const crashed = new AbortController();
  const onException = (error: unknown) => {
    part.crash(error);
    crashed.abort();
  };
  process.on("uncaughtException", onException);
  await Promise.race([aborted(signal), aborted(crashed.signal)]);
  if (crashed.signal.aborted) terminal.err("Uncaught exception in an agent; see the log.\n");
  print(`Stopping: running runs have up to ${drainSeconds} s to finish. Press Ctrl-C again to stop immediately.\n`);
  await part.close();
  emit({ type: "stopped" });
  process.off("unhandledRejection", onRejection);
  process.off("uncaughtException", onException);
  // an agent's leftover timers and sockets must not keep the process alive
  setTimeout(() => process.exit(), EXIT_DELAY_MS).unref();
  return crashed.signal.aborted ? 1 : 0;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
