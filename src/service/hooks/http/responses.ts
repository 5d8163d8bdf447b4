import type { IncomingMessage, ServerResponse } from "node:http";

const BASE_HEADERS = { "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff" };

interface ResponseHead {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly type?: string;
}

/** Sends JSON whatever the application's settings; a HEAD gets the headers of a GET without the body. */
export function sendJson(
  req: IncomingMessage,
  res: ServerResponse,
  { body, ...head }: ResponseHead & { body: unknown },
): void {
  sendBytes(req, res, { ...head, bytes: Buffer.from(JSON.stringify(body)) });
}

/** As `sendJson`, for JSON that is encoded already. */
export function sendBytes(
  req: IncomingMessage,
  res: ServerResponse,
  { status, bytes, headers, type = "application/json; charset=utf-8" }: ResponseHead & { bytes: Buffer },
): void {
  const Vary = [res.getHeader("Vary"), headers?.Vary].filter((value) => value !== undefined).join(", ");
  const own = { ...BASE_HEADERS, ...headers, ...(Vary !== "" && { Vary }) };
  res.writeHead(status, { ...own, "Content-Type": type, "Content-Length": bytes.length });
  res.end(req.method === "HEAD" ? undefined : bytes);
}
