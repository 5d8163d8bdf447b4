import { giveMemory } from "./memory.js";
import { Remote } from "./remote.js";

/** Gives what a tensor lies in, its `memory`, back to the pool of the thread or of the device; see `giveMemory`. */
export function giveBack(memory: ArrayBufferLike | Remote): void {
  if (memory instanceof Remote) memory.giveBack();
  else giveMemory(memory);
}
