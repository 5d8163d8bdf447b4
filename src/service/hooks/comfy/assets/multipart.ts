import type { IncomingMessage } from "node:http";
import type { Clock, Timer } from "../../clock.js";
import { HookError } from "../../hook-error.js";
import { ClientGone } from "../../http/body.js";

const MOST_PARTS = 64;
const MOST_HEADER_BYTES = 8 * 1024;
/** Boundaries of RFC 2046. */
const BOUNDARY = /^multipart\/form-data\s*;.{0,200}?boundary=(?:"([^"]{1,70})"|([^\s";,]{1,70}))/i;
const NAME = /;[ \t]{0,8}name="([^"]{0,200})"/i;
const FILE_NAME = /;[ \t]{0,8}filename="([^"]{0,1000})"/i;

/** Receiver of the parts of a form, in their order. */
export interface PartSink {
  /** Called at the start of a part. `fileName`: its file's, as its client wrote it. */
  begin(name: string, fileName: string | undefined): Promise<void> | void;
  data(bytes: Buffer): Promise<void> | void;
  end(): Promise<void> | void;
}

/**
 * Reads a form of parts (RFC 7578) as it arrives, no faster than the sink takes it, and holds no more than a chunk of it.
 * Fails: unsupported_media_type, invalid_request, request_timeout after `silenceMs` without a byte, ClientGone.
 */
export async function readParts(
  req: IncomingMessage,
  sink: PartSink,
  { silenceMs, clock }: { silenceMs: number; clock: Clock },
): Promise<void> {
  const [, quoted, bare] = BOUNDARY.exec(req.headers["content-type"] ?? "") ?? [];
  const boundary = quoted ?? bare;
  if (boundary === undefined) {
    throw new HookError(
      "unsupported_media_type",
      "the body must be a form of parts (Content-Type: multipart/form-data)",
    );
  }
  const parser = new PartParser(boundary, sink);
  for await (const chunk of chunksOf(req, silenceMs, clock)) await parser.take(chunk);
  parser.finish();
}

async function* chunksOf(req: IncomingMessage, silenceMs: number, clock: Clock): AsyncGenerator<Buffer, void> {
  // a refusal is still to be sent: the request stays as it is
  const chunks = req.iterator({ destroyOnReturn: false });
  try {
    for (;;) {
      let timer: Timer | undefined;
      const silence = new Promise<never>((_, reject) => {
        timer = clock.setTimer(silenceMs, () => reject(new HookError("request_timeout")));
      });
      try {
        const { done, value } = (await Promise.race([chunks.next(), silence])) as IteratorResult<Buffer>;
        if (done) break;
        yield value;
      } finally {
        timer?.cancel();
      }
    }
  } catch (error) {
    throw error instanceof HookError ? error : new ClientGone("the client left");
  }
  if (!req.complete) throw new ClientGone("the client left");
}

class PartParser {
  readonly #delimiter: Buffer;
  readonly #sink: PartSink;
  // before the first boundary there may be no line break
  #pending: Buffer = Buffer.from("\r\n");
  #state: "preamble" | "headers" | "body" | "done" = "preamble";
  #parts = 0;

  constructor(boundary: string, sink: PartSink) {
    this.#delimiter = Buffer.from(`\r\n--${boundary}`, "latin1");
    this.#sink = sink;
  }

  async take(chunk: Buffer): Promise<void> {
    this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    while (this.#state !== "done" && (this.#state === "headers" ? await this.#readHeaders() : await this.#readBody()));
    if (this.#state === "done") this.#pending = Buffer.alloc(0);
  }

  finish(): void {
    if (this.#state !== "done") throw malformed("it ends before its last boundary");
  }

  /** Passes on what is certainly before the next boundary. Returns whether there was one. */
  async #readBody(): Promise<boolean> {
    const at = this.#pending.indexOf(this.#delimiter);
    const isBody = this.#state === "body";
    if (at < 0) {
      const sure = Math.max(0, this.#pending.length - this.#delimiter.length + 1);
      if (isBody && sure > 0) await this.#sink.data(this.#pending.subarray(0, sure));
      this.#pending = this.#pending.subarray(sure);
      return false;
    }
    const after = at + this.#delimiter.length;
    if (this.#pending.length < after + 2) return false;
    if (isBody) {
      if (at > 0) await this.#sink.data(this.#pending.subarray(0, at));
      await this.#sink.end();
    }
    const next = this.#pending.toString("latin1", after, after + 2);
    if (next !== "--" && next !== "\r\n") throw malformed("a boundary is followed by other text");
    this.#state = next === "--" ? "done" : "headers";
    // its line break stays: headers that are absent end with the next one
    this.#pending = this.#pending.subarray(after);
    return true;
  }

  async #readHeaders(): Promise<boolean> {
    const end = this.#pending.indexOf("\r\n\r\n");
    if (end < 0 || end > MOST_HEADER_BYTES) {
      if (this.#pending.length > MOST_HEADER_BYTES) throw malformed("the headers of a part are too long");
      return false;
    }
    const headers = this.#pending.toString("utf8", 2, end).split("\r\n");
    const disposition = headers.find((line) => /^content-disposition:/i.test(line)) ?? "";
    const name = NAME.exec(disposition)?.[1];
    if (name === undefined) throw malformed("a part has no name");
    this.#parts += 1;
    if (this.#parts > MOST_PARTS) throw malformed(`it has more than ${MOST_PARTS} parts`);
    await this.#sink.begin(name, FILE_NAME.exec(disposition)?.[1]);
    this.#pending = this.#pending.subarray(end + 4);
    this.#state = "body";
    return true;
  }
}

const malformed = (why: string) => new HookError("invalid_request", `the form is malformed: ${why}`);
