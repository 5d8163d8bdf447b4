// Runs programs with a time limit and collects their output.
import { spawn } from "node:child_process";
import { appendFileSync, writeFileSync } from "node:fs";

const MAX_TEXT = 1 << 24;
const MAX_LOGGED = 1 << 17;

/**
 * A function that runs a program to its end, or to its limit in seconds: it is killed then with all that it started.
 * Its output goes to the log file too. Never throws; `error` says why a program did not start.
 */
export function runner(log) {
  writeFileSync(log, "");
  return (program, args, { limit, env = {}, cwd, input = "" }) =>
    new Promise((resolve) => {
      const ran = { code: null, signal: null, error: undefined, isLate: false, stdout: "", stderr: "", seconds: 0 };
      const began = Date.now();
      // a process group of its own: compilers and test runners start others
      const child = spawn(program, args, { cwd, env: { ...process.env, ...env }, detached: true });
      const timer = setTimeout(() => {
        ran.isLate = true;
        killGroup(child.pid);
      }, limit * 1000);
      for (const name of ["stdout", "stderr"]) {
        child[name].setEncoding("utf8").on("data", (text) => {
          if (ran[name].length < MAX_TEXT) ran[name] += text;
        });
      }
      child.stdin.on("error", () => {}); // it may end without reading
      child.stdin.end(input);
      child.on("error", (error) => {
        clearTimeout(timer);
        resolve(Object.assign(ran, { error: error.message }));
      });
      child.on("close", (code, signal) => {
        clearTimeout(timer);
        Object.assign(ran, { code, signal, seconds: (Date.now() - began) / 1000 });
        const text = [ran.stdout, ran.stderr].map((part) => part.slice(-MAX_LOGGED)).join("\n--- stderr\n");
        const end = `ended with ${outcomeOf(ran)} after ${ran.seconds.toFixed(1)} s`;
        appendFileSync(log, `\n=== ${program} ${args.join(" ")}\n${text}\n--- ${end}\n`);
        resolve(ran);
      });
    });
}

function killGroup(pid) {
  try {
    process.kill(-pid, "SIGKILL");
  } catch (error) {
    // it ended by itself just now
    if (error.code !== "ESRCH") throw error;
  }
}

/** "exit code 0", or what else ended it. */
export function outcomeOf({ code, signal, error, isLate }) {
  if (error !== undefined) return error;
  if (isLate) return "its time limit";
  return signal === null ? `exit code ${code}` : signal;
}

/** How a program ended, and why: the line of the error if there is one, else the last lines. */
export function complaint(ran) {
  const lines = `${ran.stdout}\n${ran.stderr}`.trim().split("\n");
  const reason = lines.find((line) => /\berror\b|Error:|not true:/i.test(line)) ?? lines.slice(-4).join(" | ");
  return `${outcomeOf(ran)}${reason === "" ? "" : `; ${reason.slice(-300)}`}`;
}
