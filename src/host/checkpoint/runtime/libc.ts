import { loadKoffi } from "../../../base/lazy-packages.js";

/** Two functions of glibc; absent on other systems. */
export interface LibC {
  /**
   * Gives free pages of the heap back to the system: glibc keeps a gigabyte and more of a released session, and half as
   * much again as a folded session needs after it was loaded in the place of another one.
   */
  trimHeap(): void;
  /** Has the system kill this process when its parent ends, even in the middle of a run. */
  dieWithParent(): void;
}

/** PR_SET_PDEATHSIG of linux/prctl.h. */
const SET_DEATH_SIGNAL = 1;
const SIGKILL = 9;

/** Loads glibc. Without it memory comes back when the process ends, and the process ends after its run. */
export function loadLibC(): LibC | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    const library = loadKoffi().load("libc.so.6");
    const trim = library.func("int malloc_trim(size_t pad)");
    const control = library.func("int prctl(int option, unsigned long value)");
    return {
      trimHeap: () => void trim(0),
      dieWithParent: () => void control(SET_DEATH_SIGNAL, SIGKILL),
    };
  } catch {
    // no koffi for this platform, or another C library
    return undefined;
  }
}
