import { createHash } from "node:crypto";

/** Key under which a store keeps the text of a graph. */
export const graphHash = (text: string): string => createHash("sha256").update(text).digest("hex");
