// Peak of resident memory of this process, in bytes.
import { readFileSync } from "node:fs";

/** The kernel's own mark: getrusage keeps the parent's through a fork. */
export function peakBytes() {
  if (process.platform !== "linux") return process.resourceUsage().maxRSS * 1024;
  return Number(/VmHWM:\s*(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))?.[1]) * 1024;
}
