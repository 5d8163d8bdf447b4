import { createHash, randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { extname, resolve } from "node:path";
import type { Readable } from "node:stream";
import { LatentkitError } from "../../../base/errors.js";
import { COUNT, checkOptions, FOLDER, type OptionRules, TEXT } from "../../../base/options.js";
import { HookError } from "../hook-error.js";
import { type FileStore, gone, type OpenedFile, openLocalFile } from "./file-store.js";
import { createS3Client, readS3Address, readS3Credentials, type S3Credentials, S3Refusal } from "./s3-client.js";

/** Most that S3 takes in one request. */
const MOST_BYTES = 5 * 2 ** 30;
/** Longest name that is part of a key; S3 has 1,024 bytes for all of it. */
const LONGEST_NAME = 255;
const LONGEST_EXTENSION = 16;

/** Options of `createS3Files`. */
export interface S3FilesOptions {
  /** `s3://BUCKET/PREFIX?endpoint=…&region=…&path_style=…`, the latter three optional. */
  readonly url: string;
  /**
   * Keys, or a function that returns those of the moment, as the providers of `@aws-sdk/credential-providers` do. Default:
   * `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`.
   */
  readonly credentials?: S3Credentials | (() => Promise<S3Credentials>);
  /** Folder with a folder for each run, which is removed once the run has ended and its files are stored. Default: none. */
  readonly scratch?: string;
  /** Pause before a request that failed is tried again; each further one is twice as long. Default: 200 ms. */
  readonly pauseMs?: number;
}

const S3_RULES: OptionRules<S3FilesOptions> = {
  url: TEXT,
  credentials: [
    "an object with accessKeyId and secretAccessKey, or a function that returns one",
    (value) => typeof value === "function" || isCredentials(value),
  ],
  scratch: FOLDER,
  pauseMs: COUNT,
};

/**
 * Creates a store of files in an S3-compatible bucket. Each file is one PUT, whose checksum the server compares, under a key
 * that no other attempt uses. Files that were stored before are served from where they are. Fails with config.invalid.
 */
export function createS3Files(options: S3FilesOptions): FileStore {
  checkOptions("createS3Files", options, S3_RULES, ["url"], "config.invalid");
  const { url, scratch, pauseMs } = options;
  const address = readS3Address(url, process.env);
  const own = options.credentials ?? readS3Credentials(process.env);
  const credentials = typeof own === "function" ? own : () => own;
  const client = createS3Client({ address, credentials, ...(pauseMs !== undefined && { pauseMs }) });
  const base = `s3://${address.bucket}/`;
  return {
    async put(runId, file, signal) {
      if (file.path.startsWith(base)) return file;
      const key = `${address.prefix}${runId}/${keyName(file.name)}`;
      try {
        await upload(key, file.path, file.contentType, signal);
      } catch (cause) {
        if (signal.aborted) throw signal.reason;
        const sentence = `The file ${JSON.stringify(file.name)} could not be stored in ${base} (${reasonOf(cause)}).`;
        throw new LatentkitError("file.write-failed", sentence, {}, { cause });
      }
      return { ...file, path: base + key };
    },
    async open(file, { headOnly }) {
      if (!file.path.startsWith("s3://")) return openLocalFile(file.path);
      if (!file.path.startsWith(base)) throw gone();
      return download(file.path.slice(base.length), headOnly);
    },
    async tidy(runId, attempt = 1) {
      const folder = attempt === 1 ? runId : `${runId}.${attempt}`;
      if (scratch !== undefined) await rm(resolve(scratch, folder), { recursive: true, force: true });
    },
  };

  async function upload(key: string, path: string, type: string | null, signal: AbortSignal): Promise<void> {
    const file = await openLocalFile(path);
    try {
      const { size: bytes } = file;
      if (bytes > MOST_BYTES) throw new Error(`it has ${bytes} bytes, expected at most ${MOST_BYTES}`);
      const sha256 = await hashOf(file.read(), signal);
      const body = { bytes, sha256, type: type ?? "application/octet-stream", read: file.read };
      const response = await client.send({ method: "PUT", key, body, signal });
      response.resume();
    } finally {
      await file.close();
    }
  }

  async function download(key: string, headOnly: boolean): Promise<OpenedFile> {
    const response = await client.send({ method: headOnly ? "HEAD" : "GET", key }).catch((cause: unknown) => {
      if (cause instanceof S3Refusal && cause.status === 404) throw gone();
      throw new HookError("files_unavailable", undefined, { cause });
    });
    const { "content-length": length = "", etag, "last-modified": modified } = response.headers;
    const time = new Date(modified ?? 0);
    if (headOnly) response.resume();
    return {
      size: /^\d{1,15}$/.test(length) ? Number(length) : 0,
      // the bytes under a key never change
      etag: etag !== undefined && /^"[\x21\x23-\x7e]{1,200}"$/.test(etag) ? etag : undefined,
      modified: Number.isNaN(time.getTime()) ? new Date(0) : time,
      read: () => response,
      async close() {
        // whole, its connection serves the next request
        if (!response.complete) response.destroy();
      },
    };
  }
}

/** Name of a new object: a worker whose lease is lost cannot replace the file of the one that runs instead. */
function keyName(name: string): string {
  const unique = randomBytes(8).toString("hex");
  if (Buffer.byteLength(name) <= LONGEST_NAME) return `${unique}/${name}`;
  const extension = extname(name);
  return Buffer.byteLength(extension) <= LONGEST_EXTENSION ? unique + extension : unique;
}

async function hashOf(content: Readable, signal: AbortSignal): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of content) {
    signal.throwIfAborted();
    hash.update(chunk as Buffer);
  }
  return hash.digest("hex");
}

/** Few words: messages of Node and of this package hold no key. */
const reasonOf = (error: unknown): string =>
  error instanceof Error
    ? (error.message || (error as NodeJS.ErrnoException).code || error.name).slice(0, 200)
    : "unknown";

const isCredentials = (value: unknown): boolean => {
  const { accessKeyId, secretAccessKey } = (value ?? {}) as Partial<S3Credentials>;
  return typeof accessKeyId === "string" && typeof secretAccessKey === "string";
};
