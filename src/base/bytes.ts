import { createHash } from "node:crypto";

/** The same memory as a Buffer. */
export const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);

/** SHA-256 in hex. */
export const sha256 = (content: string | Uint8Array): string => createHash("sha256").update(content).digest("hex");
