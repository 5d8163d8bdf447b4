import { connect, type Socket } from "node:net";

export interface RawResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A socket that says exactly what the test wants, where fetch is too polite. */
export class RawClient {
  readonly socket: Socket;
  readonly closed: Promise<void>;
  #text = "";

  #error: string | undefined;

  constructor(port: number) {
    this.socket = connect(port, "127.0.0.1");
    this.socket.setEncoding("latin1").on("data", (text) => {
      this.#text += text;
    });
    // a reset after a response is fine, a missing response is not
    this.socket.on("error", (error: NodeJS.ErrnoException) => {
      this.#error = error.code;
      this.socket.destroy();
    });
    this.closed = new Promise((resolve) => this.socket.once("close", () => resolve()));
  }

  get text(): string {
    return this.#text;
  }

  /** ECONNRESET, EPIPE …; undefined while the connection is well or was closed in order. */
  get error(): string | undefined {
    return this.#error;
  }

  send(text: string | Buffer): this {
    this.socket.write(text);
    return this;
  }

  /** The first response, as soon as headers and (by its length) body are in. Fails after `ms`. */
  async response(ms = 120_000): Promise<RawResponse> {
    for (const end = Date.now() + ms; Date.now() < end; ) {
      const parsed = parse(this.#text);
      if (parsed !== undefined) return parsed;
      if (this.socket.destroyed) break;
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    throw new Error(`no whole response, received ${JSON.stringify(this.#text.slice(0, 400))}`);
  }

  destroy(): void {
    this.socket.destroy();
  }
}

function parse(text: string): RawResponse | undefined {
  const split = text.indexOf("\r\n\r\n");
  if (split < 0) return undefined;
  const [statusLine = "", ...lines] = text.slice(0, split).split("\r\n");
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]),
  );
  const body = text.slice(split + 4);
  if (body.length < Number(headers["content-length"] ?? 0)) return undefined;
  return { status: Number(statusLine.split(" ")[1]), headers, body };
}

/** Sends one request unchanged, waits for its response and hangs up. */
export async function rawRequest(port: number, request: string | Buffer, ms?: number): Promise<RawResponse> {
  const client = new RawClient(port).send(request);
  try {
    return await client.response(ms);
  } finally {
    client.destroy();
  }
}

/** A request's text: CRLF lines, Host, and the length of a body that has none. */
export function requestText(line: string, headers: readonly string[], body = ""): string {
  const hasLength = headers.some((header) => /^(content-length|transfer-encoding):/i.test(header));
  const length = body === "" || hasLength ? [] : [`Content-Length: ${Buffer.byteLength(body)}`];
  return [`${line} HTTP/1.1`, "Host: 127.0.0.1", ...headers, ...length, "", body].join("\r\n");
}
