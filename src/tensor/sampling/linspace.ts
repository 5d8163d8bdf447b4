import { loadNative } from "../../native/load.js";

/** PyTorch's linspace in float32: the first half counts from the start, the second from the end. */
export const linspace = (start: number, end: number, count: number): number[] =>
  Array.from(loadNative().linspace(start, end, count));
