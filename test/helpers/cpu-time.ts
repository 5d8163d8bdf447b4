import { readFileSync } from "node:fs";

/** Milliseconds of the processor's time since `start`: what else the machine does is not in them. */
export function cpuMsSince(start: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}

/** Processor time of the main thread in milliseconds; undefined if the system does not tell. */
export function mainThreadMs(): number | undefined {
  if (process.platform !== "linux") return undefined;
  return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
}
