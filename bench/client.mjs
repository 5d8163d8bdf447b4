// Talks to a process that is timed: a JSON line there, a JSON line back.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpus } from "node:os";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const script = (name) => fileURLToPath(new URL(name, import.meta.url));

/** latentkit and the npm peers, with that many threads; on the last processor alone where `isPinned`. */
export const startNode = (threads, isPinned = false) =>
  start(process.execPath, [script("serve.mjs")], { LATENTKIT_THREADS: String(threads) }, isPinned);

/** The Python peers; BENCH_PYTHON names the interpreter, Debian's if absent. */
export const startPython = (isPinned = false) =>
  start(process.env.BENCH_PYTHON ?? "/usr/bin/python3", ["-B", script("peers/serve.py")], {}, isPinned);

/** taskset and its arguments; empty without such a program, or if this process may not use that processor. */
const LAST = ["-c", String(cpus().length - 1)];
const PIN = spawnSync("taskset", [...LAST, "true"]).status === 0 ? ["taskset", ...LAST] : [];

function start(program, args, env, isPinned) {
  const [command, ...rest] = [...(isPinned ? PIN : []), program, ...args];
  const child = spawn(command, rest, { stdio: ["pipe", "pipe", "inherit"], env: { ...process.env, ...env } });
  // a program that is missing has no pid, which `ask` reports
  child.on("error", () => {});
  child.stdin.on("error", () => {});
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    /** Returns the reply to one request; `{ missing: true }` if the program or the subject is not there. */
    async ask(request) {
      if (child.pid === undefined) return { missing: true };
      child.stdin.write(`${JSON.stringify(request)}\n`);
      const line = await lines.next();
      if (line.done) throw new Error(`${program} ended without a reply to ${JSON.stringify(request)}.`);
      const reply = JSON.parse(line.value);
      if (reply.error !== undefined) throw new Error(`${request.subject}: ${reply.error}`);
      return reply;
    },
    async stop() {
      if (child.pid === undefined || child.exitCode !== null) return;
      child.stdin.end();
      await once(child, "exit");
    },
  };
}
