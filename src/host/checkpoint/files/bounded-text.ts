import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";

const MAX_BYTES = 2 ** 20;

/** Text of a file of at most 1 MiB; undefined for a longer one, and for anything but a file. Throws the system's errors. */
export function readBoundedText(file: string): string | undefined {
  // O_NONBLOCK: a pipe of that name does not wait for its writer
  const descriptor = openSync(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const stats = fstatSync(descriptor);
    return stats.isFile() && stats.size <= MAX_BYTES ? readFileSync(descriptor, "utf8") : undefined;
  } finally {
    closeSync(descriptor);
  }
}
