import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { program } from "./package.js";

export interface Serving {
  readonly url: string;
  readonly child: ChildProcess;
  readonly output: { out: string; err: string };
  /** Sends a signal, waits for the end and returns the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

export const TOKEN = "a-token-that-nobody-prints-0123456789";

/** Runs `latentkit serve` on a free port, with a hook token, in a process of its own, until it listens. */
export async function serve(
  args: readonly string[],
  options: { cwd: string; env?: Record<string, string> },
): Promise<Serving> {
  const child = spawn(process.execPath, [program(), "serve", "--port", "0", "--json", ...args], {
    cwd: options.cwd,
    env: { ...process.env, LATENTKIT_CHANNELS_WEB_HOOKS_TOKEN: TOKEN, ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = { out: "", err: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output.out += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    output.err += text;
  });
  const ended = once(child, "close");
  const listening = async () => {
    while (!output.out.includes("\n")) await once(child.stdout, "data");
    return (JSON.parse(output.out.split("\n")[0]!) as { url: string }).url;
  };
  const url = await Promise.race([listening(), ended.then(() => undefined)]);
  if (url === undefined) throw new Error(`serve ended with ${child.exitCode}: ${output.err}`);
  return {
    url,
    child,
    output,
    async stop(signal = "SIGTERM") {
      child.kill(signal);
      await ended;
      return child.exitCode;
    },
  };
}

const headers = { Authorization: `Bearer ${TOKEN}`, "Content-Type": "application/json" };

export interface RunPayload {
  run_id: string;
  stream_url: string;
  status_url: string;
}

/** Starts a run and returns its payload. */
export async function start(url: string, body: object): Promise<RunPayload> {
  const response = await fetch(`${url}/hooks/agent`, { method: "POST", headers, body: JSON.stringify(body) });
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
  return (await response.json()) as RunPayload;
}

/** GET with the token. */
export const get = (address: string): Promise<Response> => fetch(address, { headers });

/** All events of a finished stream by name. */
export function eventsOf(stream: string): { event: string; data: Record<string, unknown> }[] {
  return [...stream.matchAll(/^event: (.*)\ndata: (.*)$/gm)].map(([, event, data]) => ({
    event: event!,
    data: JSON.parse(data!) as Record<string, unknown>,
  }));
}
