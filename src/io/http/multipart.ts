import { randomBytes } from "node:crypto";

// decision 111
/** One part of a multipart/form-data body: a text field, or a file with its name and type. */
export type FormPart =
  | { readonly name: string; readonly value: string }
  | { readonly name: string; readonly filename: string; readonly type: string; readonly bytes: Uint8Array };

/**
 * Encodes a multipart/form-data body, parts in order and values byte for byte: FormData would turn line ends into CRLF.
 * Names and file names must have no quotes or line ends.
 */
export function encodeMultipart(parts: readonly FormPart[]): { body: Uint8Array<ArrayBuffer>; contentType: string } {
  const boundary = `latentkit-${randomBytes(18).toString("hex")}`;
  const chunks = parts.flatMap((part) => {
    const isFile = "bytes" in part;
    const head = `--${boundary}\r\nContent-Disposition: form-data; name="${part.name}"${
      isFile ? `; filename="${part.filename}"\r\nContent-Type: ${part.type}` : ""
    }\r\n\r\n`;
    return [Buffer.from(head), isFile ? part.bytes : Buffer.from(part.value), Buffer.from("\r\n")];
  });
  const body = Buffer.concat([...chunks, Buffer.from(`--${boundary}--\r\n`)]);
  return { body, contentType: `multipart/form-data; boundary=${boundary}` };
}
