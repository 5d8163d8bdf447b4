import type { IncomingMessage, ServerResponse } from "node:http";
import { HookError } from "../hook-error.js";
import { Arrival, AWAITS_CONTINUE, type BodyLimits, ClientGone, tooLarge } from "../http/body.js";
import { keepConnection } from "../http/connection.js";
import type { AssetFiles } from "./asset-files.js";
import type { Upload } from "./asset-upload.js";

const MOST_PARTS = 64;
/** Bytes of a form besides its file: boundaries, headers, fields. */
const FORM_BYTES = 64 * 1024;
const MOST_HEADER_BYTES = 8 * 1024;
/** Boundaries of RFC 2046. */
const BOUNDARY = /^multipart\/form-data\s*;.{0,200}?boundary=(?:"([^"]{1,70})"|([^\s";,]{1,70}))/i;
/** A parameter of a part's disposition; .NET quotes no names. */
const PARAMETER = /;[ \t]{0,8}([a-z]{1,20}\*?)=(?:"([^"]{0,1000})"|([^\s";]{1,1000}))/gi;

/** Receiver of the parts of a form, in their order. */
interface PartSink {
  /** Called at the start of a part. `fileName`: its file's, as its client wrote it. */
  begin(name: string, fileName: string | undefined): Promise<void> | void;
  data(bytes: Buffer): Promise<void> | void;
  end(): Promise<void> | void;
}

/**
 * Reads a form of parts (RFC 7578) as it arrives, no faster than the sink takes it, and holds no more than a chunk of it.
 * `maxBytes`: those of its file. Fails: unsupported_media_type, payload_too_large, invalid_request, request_timeout,
 * ClientGone.
 */
export async function readParts(
  req: IncomingMessage & { readonly [AWAITS_CONTINUE]?: boolean },
  res: ServerResponse,
  sink: PartSink,
  limits: BodyLimits,
): Promise<void> {
  const [, quoted, bare] = BOUNDARY.exec(req.headers["content-type"] ?? "") ?? [];
  const boundary = quoted ?? bare;
  if (boundary === undefined) {
    throw new HookError("unsupported_media_type", "Content-Type: expected multipart/form-data");
  }
  let left = limits.maxBytes + FORM_BYTES;
  if (Number(req.headers["content-length"] ?? 0) > left) throw tooLarge(limits.maxBytes, " of a file");
  if (req[AWAITS_CONTINUE]) res.writeContinue();
  const parser = new PartParser(boundary, sink);
  for await (const chunk of chunksOf(req, new Arrival(limits))) {
    left -= chunk.length;
    if (left < 0) throw tooLarge(limits.maxBytes, " of a file");
    await parser.take(chunk);
  }
  parser.finish();
  keepConnection(res);
}

async function* chunksOf(req: IncomingMessage, arrival: Arrival): AsyncGenerator<Buffer, void> {
  // a refusal is still to be sent: the request stays as it is
  const chunks = req.iterator({ destroyOnReturn: false });
  try {
    for (;;) {
      const late = new Promise<never>((_, reject) => {
        arrival.wait(() => reject(new HookError("request_timeout")));
      });
      const { done, value } = (await Promise.race([chunks.next(), late])) as IteratorResult<Buffer, undefined>;
      arrival.end(value?.length ?? 0);
      if (done) break;
      yield value;
    }
  } catch (error) {
    throw error instanceof HookError ? error : new ClientGone("the client left");
  } finally {
    arrival.end(0);
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
    if (this.#state !== "done") throw malformed("the closing boundary is missing");
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
    if (next !== "--" && next !== "\r\n") throw malformed("unexpected text after a boundary");
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
    const { name, fileName } = namesIn(disposition);
    if (name === undefined) throw malformed("a part has no name");
    this.#parts += 1;
    if (this.#parts > MOST_PARTS) throw malformed(`it has more than ${MOST_PARTS} parts`);
    await this.#sink.begin(name, fileName);
    this.#pending = this.#pending.subarray(end + 4);
    this.#state = "body";
    return true;
  }
}

/** Names of a part and of its file; `filename*`, which has other characters than ASCII as .NET sends it, comes first. */
function namesIn(disposition: string): { name: string | undefined; fileName: string | undefined } {
  const found = [...disposition.matchAll(PARAMETER)];
  const parameter = (key: string) => {
    const [, , quoted, bare] = found.find(([, name]) => name!.toLowerCase() === key) ?? [];
    return quoted ?? bare;
  };
  const extended = /^utf-8'[^']*'(.*)$/i.exec(parameter("filename*") ?? "")?.[1];
  return { name: parameter("name"), fileName: decoded(extended) ?? parameter("filename") };
}

function decoded(text: string | undefined): string | undefined {
  try {
    return text && decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

const malformed = (why: string) => new HookError("invalid_request", `the form is malformed: ${why}`);

const MOST_FIELD_BYTES = 4096;

/** A kind of form: the part that has its file, whether that comes last, and the names of the fields that are kept. */
export interface FormKind {
  readonly file: string;
  readonly isFileLast: boolean;
  readonly fields: readonly string[];
}

/** The parts of an upload: fields in memory, its file on the disk. */
export class UploadForm implements PartSink {
  readonly #assets: AssetFiles;
  readonly #mostBytes: number;
  readonly #kind: FormKind;
  readonly #fields = new Map<string, string[]>();
  #part = "";
  #text: Buffer[] = [];
  #textBytes = 0;
  /** The file as far as it has arrived. */
  upload: Upload | undefined;
  /** Name of the file, as its client wrote it. */
  fileName: string | undefined;

  constructor(assets: AssetFiles, mostBytes: number, kind: FormKind) {
    this.#assets = assets;
    this.#mostBytes = mostBytes;
    this.#kind = kind;
  }

  /** The last value of a field. */
  field(name: string): string | undefined {
    return this.all(name).at(-1);
  }

  all(name: string): readonly string[] {
    return this.#fields.get(name) ?? [];
  }

  async begin(name: string, fileName: string | undefined): Promise<void> {
    const { file, isFileLast } = this.#kind;
    if (this.upload !== undefined && (isFileLast || name === file)) {
      throw new HookError(
        "invalid_request",
        isFileLast ? "the file must be the last part" : `${file}: expected one file`,
      );
    }
    this.#part = name;
    if (name !== file) return;
    this.fileName = fileName;
    this.upload = await this.#assets.begin();
  }

  async data(bytes: Buffer): Promise<void> {
    if (this.#part === this.#kind.file && this.upload !== undefined) {
      if (this.upload.size + bytes.length > this.#mostBytes) throw tooLarge(this.#mostBytes, " of a file");
      return this.upload.write(bytes);
    }
    if (!this.#kind.fields.includes(this.#part)) return;
    this.#textBytes += bytes.length;
    if (this.#textBytes > MOST_FIELD_BYTES) throw tooLarge(MOST_FIELD_BYTES, ` of "${this.#part}"`);
    this.#text.push(Buffer.from(bytes));
  }

  end(): void {
    if (!this.#kind.fields.includes(this.#part)) return;
    const text = Buffer.concat(this.#text).toString("utf8");
    [this.#text, this.#textBytes] = [[], 0];
    this.#fields.set(this.#part, [...this.all(this.#part), text]);
  }
}
