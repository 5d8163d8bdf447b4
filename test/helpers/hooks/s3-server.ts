import { createHash, createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export const S3_KEYS = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY" };
const REGION = "eu-test-1";

export interface StoredObject {
  readonly bytes: Buffer;
  readonly type: string;
}

/** A server that understands PUT, GET and HEAD of objects as S3 does, and checks every signature and checksum. */
export interface S3Server {
  /** `s3://` address with endpoint and region, below the prefix. */
  readonly url: string;
  readonly objects: Map<string, StoredObject>;
  /** Method and path of every request, in order. */
  readonly requests: string[];
  /** Handles a request instead of the server if it returns true. */
  intercept: (req: IncomingMessage, res: ServerResponse) => boolean;
}

/** A server for each test of the block. Call inside `describe`. */
export function s3Server(): () => S3Server {
  let current: S3Server;
  const server = createServer((req, res) => void handle(current, req, res));
  before(async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  beforeEach(() => {
    const { port } = server.address() as AddressInfo;
    const query = new URLSearchParams({ endpoint: `http://127.0.0.1:${port}`, region: REGION });
    const url = `s3://renders/team a/x?${query}`;
    current = { url, objects: new Map(), requests: [], intercept: () => false };
  });
  after(async () => {
    server.close();
    server.closeAllConnections();
    await once(server, "close");
  });
  return () => current;
}

async function handle(s3: S3Server, req: IncomingMessage, res: ServerResponse): Promise<void> {
  s3.requests.push(`${req.method} ${req.url}`);
  if (s3.intercept(req, res)) return;
  const fault = signatureFault(req);
  if (fault !== undefined) return refuse(res, 403, fault);
  const key = decodeURIComponent(req.url!);
  if (!key.startsWith("/renders/")) return refuse(res, 404, "NoSuchBucket");
  if (req.method !== "PUT") return send(s3, key, req, res);
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of req) chunks.push(chunk as Buffer);
  } catch {
    // half an upload leaves nothing
    return;
  }
  const bytes = Buffer.concat(chunks);
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  if (sha256 !== req.headers["x-amz-content-sha256"]) return refuse(res, 400, "XAmzContentSHA256Mismatch");
  s3.objects.set(key, { bytes, type: req.headers["content-type"] ?? "" });
  res.writeHead(200, { ETag: etagOf(bytes) }).end();
}

function send({ objects }: S3Server, key: string, req: IncomingMessage, res: ServerResponse): void {
  const object = objects.get(key);
  if (object === undefined) {
    refuse(res, 404, "NoSuchKey");
    return;
  }
  const { bytes, type } = object;
  res.writeHead(200, {
    "Content-Length": bytes.length,
    "Content-Type": type,
    ETag: etagOf(bytes),
    "Last-Modified": "Wed, 21 Oct 2026 07:28:00 GMT",
  });
  res.end(req.method === "HEAD" ? undefined : bytes);
}

export function refuse(res: ServerResponse, status: number, code: string, headers = {}): void {
  const xml = `<?xml version="1.0"?><Error><Code>${code}</Code><AWSAccessKeyId>${S3_KEYS.accessKeyId}</AWSAccessKeyId></Error>`;
  res.writeHead(status, { "Content-Type": "application/xml", ...headers }).end(xml);
}

const etagOf = (bytes: Buffer) => `"${createHash("md5").update(bytes).digest("hex")}"`;

/** Computes the signature anew from what arrived, by the steps of AWS's page on Signature Version 4. */
function signatureFault(req: IncomingMessage): string | undefined {
  const form =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/;
  const [, id, day, region, signedHeaders, signature] = form.exec(req.headers.authorization ?? "") ?? [];
  if (id !== S3_KEYS.accessKeyId) return "InvalidAccessKeyId";
  if (region !== REGION) return "AuthorizationHeaderMalformed";
  const names = signedHeaders!.split(";");
  for (const needed of ["host", "x-amz-date", "x-amz-content-sha256"])
    if (!names.includes(needed)) return "AccessDenied";
  const date = String(req.headers["x-amz-date"]);
  const iso = date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z");
  if (Math.abs(Date.parse(iso) - Date.now()) > 15 * 60_000) return "RequestTimeTooSkewed";
  let canonical = `${req.method}\n${req.url}\n\n`;
  for (const name of names) canonical += `${name}:${String(req.headers[name] ?? "").trim()}\n`;
  canonical += `\n${signedHeaders}\n${req.headers["x-amz-content-sha256"]}`;
  const digest = createHash("sha256").update(canonical).digest("hex");
  const sign = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text).digest();
  const dayKey = sign(`AWS4${S3_KEYS.secretAccessKey}`, day!);
  const key = sign(sign(sign(dayKey, region), "s3"), "aws4_request");
  const expected = sign(key, `AWS4-HMAC-SHA256\n${date}\n${day}/${region}/s3/aws4_request\n${digest}`).toString("hex");
  return expected === signature ? undefined : "SignatureDoesNotMatch";
}
