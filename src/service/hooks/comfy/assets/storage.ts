import { HookError } from "../../hook-error.js";

const FULL: ReadonlySet<unknown> = new Set(["ENOSPC", "EDQUOT"]);
const FORBIDDEN: ReadonlySet<unknown> = new Set(["EROFS", "EACCES", "EPERM"]);

// decision 330
/** Does work in the folder of uploads. Fails with storage_full where the disk is, else with files_unavailable. */
export async function inStorage<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    const { code, syscall } = cause as NodeJS.ErrnoException;
    if (syscall === undefined) throw cause;
    if (FULL.has(code)) throw new HookError("storage_full", "the disk for uploads is full, try again later", { cause });
    const sentence = FORBIDDEN.has(code) ? "the service may not write into its folder of uploads" : undefined;
    throw new HookError("files_unavailable", sentence, { cause });
  }
}
