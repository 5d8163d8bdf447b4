import { spawn } from "node:child_process";
import { program } from "./package.js";

export interface Ran {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Runs the command line in a process of its own. */
export function latentkit(
  args: readonly string[],
  options: {
    cwd?: string;
    env?: Record<string, string>;
    /** Text on its standard input, which then stays open. */
    stdin?: string;
    onStdout?: (text: string, kill: (signal: NodeJS.Signals) => void) => void;
    onStderr?: (text: string, kill: (signal: NodeJS.Signals) => void) => void;
  } = {},
): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [program(), ...args], {
      cwd: options.cwd,
      env: { ...process.env, ...options.env },
      stdio: [options.stdin === undefined ? "ignore" : "pipe", "pipe", "pipe"],
    });
    child.stdin?.write(options.stdin ?? "");
    const ran: Ran = { code: null, stdout: "", stderr: "" };
    child.stdout!.setEncoding("utf8").on("data", (text: string) => {
      ran.stdout += text;
      options.onStdout?.(ran.stdout, (signal) => child.kill(signal));
    });
    child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      ran.stderr += text;
      options.onStderr?.(ran.stderr, (signal) => child.kill(signal));
    });
    child.on("error", reject);
    child.on("close", (code) => resolve({ ...ran, code }));
  });
}
