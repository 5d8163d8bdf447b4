import { readFileSync } from "node:fs";

/** Resident memory of a process in MB (Linux). @param {number} id */
export const residentMb = (id) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${id}/status`, "utf8"))?.[1]) / 1024;
