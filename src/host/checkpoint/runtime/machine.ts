import { readFileSync } from "node:fs";
import { availableParallelism, cpus, freemem } from "node:os";
import { dirname, join } from "node:path";

const KIBIBYTE = 1024;

/** Number of cores that this process may use: two threads of one core would share its vector units. */
export function coreCount(root = "/"): number {
  const allowed = availableParallelism();
  const siblings = cpus().map((_, index) =>
    read(join(root, `sys/devices/system/cpu/cpu${index}/topology/thread_siblings_list`)),
  );
  const cores = new Set(siblings).size;
  return siblings.includes("") ? allowed : Math.min(allowed, cores);
}

/**
 * Bytes of memory that this process and its children can still take: what the system has available, or what the limit of
 * a control group leaves, whichever is less. Pages of files count as free, for the system takes them back.
 */
export function freeMemory(root = "/"): number {
  if (process.platform !== "linux") return freemem();
  const available = numberAfter(read(join(root, "proc/meminfo")), "MemAvailable:");
  const groups = read(join(root, "proc/self/cgroup")).split("\n").slice(0, 64);
  return Math.min(
    available === undefined ? freemem() : available * KIBIBYTE,
    ...groups.flatMap((line) => groupRemainders(root, line)),
  );
}

/** Names of the files of a memory controller: version 2 and 1. */
const FILES = {
  2: { folder: "sys/fs/cgroup", limit: "memory.max", usage: "memory.current", cache: "inactive_file" },
  1: {
    folder: "sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    cache: "total_inactive_file",
  },
} as const;

/** Bytes that a control group and those around it leave; `line` is "NUMBER:CONTROLLERS:PATH". */
function groupRemainders(root: string, line: string): number[] {
  const [, controllers = "", path = ""] = line.split(":");
  const isVersion2 = controllers === "";
  if (!isVersion2 && !controllers.split(",").includes("memory")) return [];
  const { folder, limit, usage, cache } = FILES[isVersion2 ? 2 : 1];
  const remainders: number[] = [];
  // a container may show the path outside it; only the root of that exists here
  for (let group = join("/", path); ; group = dirname(group)) {
    const at = (file: string) => read(join(root, folder, group, file));
    const [most, used] = [numberAfter(at(limit), ""), numberAfter(at(usage), "")];
    if (most !== undefined && used !== undefined)
      remainders.push(Math.max(0, most - used + (numberAfter(at("memory.stat"), cache) ?? 0)));
    if (group === "/" || group === ".") return remainders;
  }
}

/** Number at the start of the line that begins with a word; undefined if there is none, as in "max". */
function numberAfter(text: string, word: string): number | undefined {
  for (const line of text.split("\n")) {
    const [first, second] = line.trim().split(/\s+/, 2);
    const number = word === "" ? first : first === word ? second : undefined;
    if (number !== undefined && /^\d+$/.test(number)) return Number(number);
  }
  return undefined;
}

/** Text of a file, "" if it does not exist: systems have one version of control groups, or none. */
function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
