import { randomUUID } from "node:crypto";
import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { closeLingering } from "../hooks/http/linger.js";

/** Sends an error where Node has no response object, and closes the connection. */
export function sendRawError(socket: Duplex, status: number, sentence: string): void {
  const body = JSON.stringify({ ok: false, error: sentence, code: "invalid_request", request_id: randomUUID() });
  socket.write(
    [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      "Content-Type: application/json; charset=utf-8",
      `Content-Length: ${Buffer.byteLength(body)}`,
      "Cache-Control: no-store",
      "Connection: close",
      "",
      body,
    ].join("\r\n"),
  );
  closeLingering(socket);
}
