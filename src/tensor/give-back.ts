import { Remote } from "./device/remote.js";
import { giveMemory } from "./memory.js";

/** Gives what a tensor lies in, its `memory`, back to the pool of the thread or of the device; see `giveMemory`. */
export function giveBack(memory: ArrayBufferLike | Remote): void {
  if (memory instanceof Remote) memory.giveBack();
  else giveMemory(memory);
}
