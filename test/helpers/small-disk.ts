import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";

/** Mounts a file system in memory over a folder, as `size=64k` or `ro`. Returns false if this user may not mount. */
export function mountDisk(folder: string, options: string): boolean {
  if (process.platform !== "linux" || !existsSync("/bin/mount")) return false;
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", folder], { stdio: "pipe" });
    return true;
  } catch (error) {
    return (error as { status?: number }).status === 0;
  }
}

/** Mounts a disk again, writable or not. */
export const remountDisk = (folder: string, options: string): void =>
  void execFileSync("mount", ["-o", `remount,${options}`, folder], { stdio: "pipe" });

export const unmountDisk = (folder: string): void => void execFileSync("umount", [folder], { stdio: "pipe" });
