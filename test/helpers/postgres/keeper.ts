// A process of its own that runs a PostgreSQL cluster in a folder for as long as another process lives. Arguments: the
// folder, which it creates; the id of that process. Writes the folder's file `ready` or `failed` when it knows.
import { execFileSync } from "node:child_process";
import { chownSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PROGRAMS } from "./programs.js";

const POLL_MS = 300;
/** Debian's user nobody: PostgreSQL refuses to run as root. */
const NOBODY = 65534;

const [folder, watched] = process.argv.slice(2) as [string, string];
const isRoot = process.getuid?.() === 0;

function run(program: string, ...args: string[]): void {
  const path = join(PROGRAMS!, program);
  const options = { cwd: folder, stdio: "ignore", timeout: 120_000 } as const;
  if (!isRoot) execFileSync(path, args, options);
  else execFileSync("setpriv", [`--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups", path, ...args], options);
}

function tell(name: string, text: string): void {
  writeFileSync(join(folder, "told"), text);
  renameSync(join(folder, "told"), join(folder, name));
}

mkdirSync(folder, { recursive: true });
const data = join(folder, "data");
try {
  if (isRoot) chownSync(folder, NOBODY, NOBODY);
  run("initdb", "-D", data, "-A", "trust", "-U", "latentkit", "--no-sync", "--no-locale", "-E", "UTF8");
  const settings = `-c listen_addresses='' -k ${folder} -c fsync=off -c max_connections=200`;
  run("pg_ctl", "-D", data, "-w", "-s", "-l", join(folder, "log"), "-o", settings, "start");
  tell("ready", "");
} catch (error) {
  tell("failed", String(error));
}
setInterval(() => {
  try {
    process.kill(Number(watched), 0);
  } catch {
    try {
      run("pg_ctl", "-D", data, "-m", "immediate", "-w", "-s", "stop");
    } finally {
      for (const path of [folder, `${folder}.lock`]) rmSync(path, { recursive: true, force: true });
      process.exit();
    }
  }
}, POLL_MS);
