import { readdirSync, readFileSync } from "node:fs";
import type { Context } from "mocha";
import { skip } from "../skip.js";

/** Numbers of this process's children with ONNX Runtime in them. Skips the test if no system tells. */
export function runtimeProcesses(test: Context): number[] {
  if (process.platform !== "linux") skip(test, "children of a process are listed on Linux");
  return readdirSync("/proc")
    .map(Number)
    .filter((id) => id > 0 && isOurs(id));
}

function isOurs(id: number): boolean {
  try {
    // its name, in brackets, may hold anything
    const [, parent] = readFileSync(`/proc/${id}/stat`, "utf8").split(") ").at(-1)!.split(" ");
    return Number(parent) === process.pid && readFileSync(`/proc/${id}/cmdline`, "utf8").includes("runtime/child.js");
  } catch {
    // it has ended
    return false;
  }
}
