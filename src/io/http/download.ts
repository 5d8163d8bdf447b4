import type { IncomingMessage } from "node:http";
import { type RequestOptions, request } from "node:https";
import { onAbort } from "../../base/abort.js";
import { describe, LatentkitError } from "../../base/errors.js";
import { connectionFault, connectOptions, isPublicAddress } from "./public-address.js";

export interface DownloadOptions {
  /** Names the download in messages: `input "image"`. */
  readonly subject?: string;
  readonly signal?: AbortSignal;
  /** Limit of the content. Default: 64 MiB. */
  readonly maxBytes?: number;
  /** Limit of the whole download, redirects included. Default: 60 s. */
  readonly timeoutMs?: number;
  /** IP addresses that may be connected to. Default: those of the public internet. */
  readonly isAllowed?: (ip: string) => boolean;
  /** Further options of each request, such as a certificate authority. */
  readonly request?: Pick<RequestOptions, "ca">;
}

const MAX_BYTES = 64 * 2 ** 20;
const TIMEOUT_MS = 60_000;
const MAX_REDIRECTS = 5;
const MAX_ADDRESS_CHARACTERS = 8192;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/**
 * Downloads an https: address. Private, loopback and link-local addresses are refused when a connection is made, by what
 * the name resolves to at that moment; so is each redirect, up to five. No header or cookie is sent.
 * Fails with download.refused, download.failed and the signal's reason.
 */
export async function download(address: string, options: DownloadOptions = {}): Promise<Buffer> {
  const { subject = "Download", signal, timeoutMs = TIMEOUT_MS } = options;
  const ended = new AbortController();
  const unsubscribe = onAbort(signal, () => ended.abort(signal?.reason));
  const late = failed(subject, address, `timed out after ${timeoutMs / 1000} s`);
  const timer = setTimeout(() => ended.abort(late), timeoutMs);
  try {
    let url = parseAddress(address, subject);
    for (let redirects = 0; ; redirects++) {
      ended.signal.throwIfAborted();
      const reply = await get(url, { ...options, subject }, ended.signal);
      if (reply.location === undefined) return reply.body;
      if (redirects === MAX_REDIRECTS) throw failed(subject, address, `more than ${MAX_REDIRECTS} redirects`);
      url = redirected(url, reply.location, subject);
    }
  } finally {
    clearTimeout(timer);
    unsubscribe();
  }
}

/** Parses an address; throws download.refused for anything but https: without credentials. */
export function parseAddress(address: string, subject: string): URL {
  const url = address.length <= MAX_ADDRESS_CHARACTERS && URL.canParse(address) ? new URL(address) : undefined;
  if (url?.protocol === "https:" && url.username === "" && url.password === "") return url;
  throw refused(subject, "an https: URL without user name or password", address);
}

type Reply = { readonly location: string } | { readonly location?: undefined; readonly body: Buffer };

function get(url: URL, options: DownloadOptions & { subject: string }, signal: AbortSignal): Promise<Reply> {
  const { subject, isAllowed = isPublicAddress, maxBytes = MAX_BYTES } = options;
  const connection = connectOptions(url, isAllowed, () => refused(subject, "a public address", url.href));
  return new Promise((resolve, reject) => {
    const fail = (error: unknown) => {
      sent.destroy();
      reject(
        signal.aborted
          ? signal.reason
          : error instanceof LatentkitError
            ? error
            : failed(subject, url.href, connectionFault(error)),
      );
    };
    const headers = { accept: "image/*, */*;q=0.1", "accept-encoding": "identity", "user-agent": "latentkit" };
    const sent = request(url, { ...options.request, ...connection, headers, signal });
    sent.on("error", fail);
    sent.on("response", (response) => {
      response.on("error", fail);
      const { statusCode = 0, headers } = response;
      if (REDIRECTS.has(statusCode) && headers.location !== undefined) {
        sent.destroy();
        return resolve({ location: headers.location });
      }
      if (statusCode !== 200) return fail(failed(subject, url.href, `status ${statusCode}`));
      const encoding = headers["content-encoding"] ?? "identity";
      if (encoding !== "identity")
        return fail(failed(subject, url.href, `compressed content (${describe(encoding)}), which was not requested`));
      readBody(response, maxBytes, () => fail(refused(subject, `a file of at most ${maxBytes} bytes`, url.href)))
        .then((body) => resolve({ body }))
        .catch(fail);
    });
    sent.end();
  });
}

async function readBody(response: IncomingMessage, maxBytes: number, tooLarge: () => void): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  if (Number(response.headers["content-length"] ?? 0) > maxBytes) tooLarge();
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) tooLarge();
    else chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function redirected(from: URL, location: string, subject: string): URL {
  if (!URL.canParse(location, from.href)) throw failed(subject, from.href, "the redirect has no address");
  return parseAddress(new URL(location, from.href).href, subject);
}

/** An address without its query, which may hold a key. */
const shown = (address: string): string => describe(address.split("?")[0]);

function refused(subject: string, expected: string, address: string): LatentkitError {
  const received = shown(address);
  const message = `${subject}: expected ${expected}, received ${received}.`;
  return new LatentkitError("download.refused", message, { expected, received });
}

function failed(subject: string, address: string, reason: string): LatentkitError {
  const received = shown(address);
  return new LatentkitError("download.failed", `${subject}: could not download ${received}: ${reason}.`, { received });
}
