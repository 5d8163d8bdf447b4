// npm, run by this Node without a shell.
import { spawnSync } from "node:child_process";
import { realpathSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";

/** Output of npm with these arguments. Throws with all that it printed if it fails. */
export function npm(args, cwd, env = process.env) {
  const npmCli = process.env.npm_execpath ?? join(dirname(programPath("npm")), "npm-cli.js");
  return run(process.execPath, [npmCli, ...args], cwd, env);
}

/** Output of a program. Throws with all that it printed if it fails. */
export function run(program, args, cwd, env = process.env) {
  const done = spawnSync(program, args, { cwd, env, encoding: "utf8", maxBuffer: 1 << 26 });
  if (done.status === 0) return done.stdout;
  const why = done.error?.message ?? `exit code ${done.status ?? done.signal}`;
  throw new Error(`${program} ${args.join(" ")} in ${cwd} failed (${why}):\n${done.stdout}${done.stderr}`);
}

/** Path of a program of PATH, with its links resolved. Throws if there is none. */
export function programPath(program) {
  for (const folder of String(process.env.PATH).split(delimiter)) {
    try {
      return realpathSync(join(folder, program));
    } catch (error) {
      if (error.code !== "ENOENT" && error.code !== "ENOTDIR") throw error;
    }
  }
  throw new Error(`${program} was not found on PATH.`);
}
