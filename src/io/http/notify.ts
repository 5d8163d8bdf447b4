import { request as httpRequest } from "node:http";
import { request as httpsRequest, type RequestOptions } from "node:https";
import { onAbort } from "../../base/abort.js";
import { connectionFault, connectOptions } from "./public-address.js";

export interface Notification {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** IP addresses that may be connected to. */
  readonly isAllowed: (ip: string) => boolean;
  /** Limit of the whole exchange. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Further options of the request, such as a certificate authority. */
  readonly request?: Pick<RequestOptions, "ca">;
}

export interface Acknowledgement {
  readonly status: number;
  /** The header Retry-After. */
  readonly retryAfter: string | undefined;
}

/** Why there was no response, as a clause without anything that the other side sent. */
export class NotifyFault extends Error {
  override readonly name = "NotifyFault";
}

/** Most bytes of a response that are received, so that the connection ends as the other side expects. */
const MOST_BYTES = 65_536;

/**
 * Posts a body and returns the response's status. The addresses of the name are checked when the connection is made; a
 * redirect is a response like any other. Rejects with NotifyFault.
 */
export async function notify(notification: Notification): Promise<Acknowledgement> {
  const { url, headers, body, isAllowed, timeoutMs, signal } = notification;
  const connection = connectOptions(url, isAllowed, () => new NotifyFault("the address is not allowed"));
  return new Promise((resolve, reject) => {
    const request = url.protocol === "https:" ? httpsRequest : httpRequest;
    const length = String(Buffer.byteLength(body));
    const sent = request(url, {
      ...notification.request,
      ...connection,
      method: "POST",
      headers: { ...headers, "content-length": length, "user-agent": "latentkit" },
    });
    let acknowledgement: Acknowledgement | undefined;
    const end = (fault?: NotifyFault) => {
      clearTimeout(timer);
      unsubscribe();
      sent.destroy();
      // what comes after the status changes nothing
      if (acknowledgement !== undefined) resolve(acknowledgement);
      else reject(fault ?? new NotifyFault("the connection ended early"));
    };
    const timer = setTimeout(() => end(new NotifyFault(`no response within ${timeoutMs / 1000} s`)), timeoutMs);
    const unsubscribe = onAbort(signal, () => end(new NotifyFault("the service is shutting down")));
    sent.on("error", (error) => end(faultOf(error)));
    sent.on("close", () => end());
    sent.on("response", (response) => {
      acknowledgement = { status: response.statusCode ?? 0, retryAfter: response.headers["retry-after"] };
      let bytes = 0;
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > MOST_BYTES) end();
      });
      response.on("error", () => end());
      response.on("end", () => end());
    });
    sent.end(body);
  });
}

const faultOf = (error: unknown): NotifyFault =>
  error instanceof NotifyFault ? error : new NotifyFault(`the connection failed (${connectionFault(error)})`);
