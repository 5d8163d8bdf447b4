import { randomUUID } from "node:crypto";
import { type IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Request } from "express";
import type { WebSocket, WebSocketServer } from "ws";
import { lazy, loadWs } from "../../../../base/lazy.js";
import { isPlainObject } from "../../../../io/json/lossless.js";
import { HookError } from "../../hook-error.js";
import { refuseForeign } from "../../http/access/cross-origin.js";
import { closeLingering, whenIdle } from "../../http/connection.js";
import type { HookContext } from "../../http/context.js";
import { hostRefusal, passGate } from "../../http/gate.js";
import { SEND_ERROR } from "../../http/responses.js";
import { type Message, readClientId } from "./prompts.js";

/** Longest message of a client: clients only send their feature flags. */
const MOST_MESSAGE_BYTES = 64 * 1024;
/** Backlog below which a socket is not checked against the total. */
const FEW_BYTES = 16 * 1024;
const GOING_AWAY = 1001;
/** Kinds of binary messages, and of pictures in them. */
const PREVIEW = 1;
const PREVIEW_WITH_METADATA = 4;
const PNG = 2;
const PATHS: ReadonlySet<string | undefined> = new Set(["/ws", "/api/ws"]);

/** Facts that a new socket is told. */
export interface SocketFacts {
  readonly access: "open" | "token";
  /** The features of the service. */
  readonly features: object;
  /** The message about the queue. */
  status(): Promise<Message>;
}

/** The WebSockets of clients, by their ids. Nothing waits for a reader: one that is too slow is cut. */
export class Sockets {
  readonly #context: HookContext;
  readonly #facts: SocketFacts;
  readonly #byClient = new Map<string, Set<WebSocket>>();
  readonly #server = lazy((): WebSocketServer => {
    const { WebSocketServer } = loadWs();
    const options = { noServer: true, clientTracking: false, perMessageDeflate: false };
    return new WebSocketServer({ ...options, maxPayload: MOST_MESSAGE_BYTES });
  });
  /** Sockets whose clients read previews with metadata. */
  readonly #readsMetadata = new WeakSet<WebSocket>();
  /** Bytes that a socket may hold beyond the usual: a picture on its way. */
  readonly #allowance = new WeakMap<WebSocket, number>();
  #isClosed = false;

  constructor(context: HookContext, facts: SocketFacts) {
    this.#context = context;
    this.#facts = facts;
  }

  /** Number of open sockets. */
  get size(): number {
    let size = 0;
    for (const sockets of this.#byClient.values()) size += sockets.size;
    return size;
  }

  /** Opens a WebSocket, or sends a refusal. Never fails. */
  async upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const requestId = this.#context.newId();
    const cut = () => void socket.destroy();
    socket.on("error", cut);
    // what came with the request is back in the socket then, and responses to requests before it have left
    await whenIdle(req.socket);
    try {
      const query = queryOf(req);
      const clientId = readClientId(query.get("clientId"), "clientId") ?? randomUUID().replaceAll("-", "");
      socket.once("close", this.#admit(req, query, clientId, cut));
      this.#server().handleUpgrade(req, socket, head, (client) => {
        socket.off("error", cut);
        void this.#open(client, clientId);
      });
    } catch (error) {
      if (socket.destroyed) return;
      const known = error instanceof HookError ? error : new HookError("internal", undefined, { cause: error });
      if (known !== error) this.#context.log.error({ request_id: requestId, err: error }, known.message);
      refuse(req, socket, known, requestId);
    }
  }

  /** Whether a client has an open socket here. */
  has(clientId: string): boolean {
    return this.#byClient.has(clientId);
  }

  /** Sends to the sockets of a client. */
  send(clientId: string, message: Message): void {
    const sockets = this.#byClient.get(clientId);
    if (sockets === undefined) return;
    const text = JSON.stringify(message);
    for (const client of sockets) this.#write(client, text);
  }

  // Live previews come ten times a second from the process that renders; workers send none here.
  /** Shows the sockets of a client a picture of the moment; those that still have much to read do without. */
  preview(clientId: string, png: Uint8Array, metadata: object): void {
    for (const client of this.#byClient.get(clientId) ?? [])
      if (client.bufferedAmount <= FEW_BYTES) this.#write(client, this.#frame(client, png, metadata));
  }

  // Too large for the readers' bound and not to be skipped: the prompt's messages wait until it has left.
  /** Sends the sockets of a client a picture that a node has made for them, and waits until they have read it. */
  async picture(clientId: string, png: Uint8Array, metadata: object): Promise<void> {
    for (const client of this.#byClient.get(clientId) ?? []) {
      const frame = this.#frame(client, png, metadata);
      this.#allowance.set(client, frame.length);
      await new Promise<void>((resolve) => this.#write(client, frame, () => resolve()));
      this.#allowance.delete(client);
    }
  }

  #frame(client: WebSocket, png: Uint8Array, metadata: object): Buffer {
    if (!this.#readsMetadata.has(client)) return Buffer.concat([numbers(PREVIEW, PNG), png]);
    const json = Buffer.from(JSON.stringify({ ...metadata, image_type: "image/png" }));
    return Buffer.concat([numbers(PREVIEW_WITH_METADATA, json.length), json, png]);
  }

  /** Sends to all sockets. */
  broadcast(message: Message): void {
    if (this.#byClient.size === 0) return;
    const text = JSON.stringify(message);
    for (const sockets of this.#byClient.values()) for (const client of sockets) this.#write(client, text);
  }

  /** Closes all sockets. */
  close(): void {
    this.#isClosed = true;
    for (const sockets of this.#byClient.values()) for (const client of sockets) client.close(GOING_AWAY);
  }

  /** Takes a slot for the socket and returns the function that releases it. Fails as the gate, and with 404, 403 and 429. */
  #admit(req: IncomingMessage, query: URLSearchParams, clientId: string, cut: () => void): () => void {
    const { runs, slots, config } = this.#context;
    const path = req.url?.split("?", 1)[0];
    const sentence = hostRefusal(req);
    if (sentence !== undefined) throw new HookError("invalid_request", sentence);
    if (!PATHS.has(path)) throw new HookError("not_found");
    passGate(this.#context, this.#facts.access, { req: req as Request, query, params: {} });
    refuseForeign(config, req, this.#facts.access);
    if (this.#isClosed || runs.closing) throw new HookError("shutting_down");
    if (req.socket.destroyed) throw new HookError("invalid_request");
    return slots.take(`ws ${clientId}`, cut);
  }

  async #open(client: WebSocket, clientId: string): Promise<void> {
    const sockets = this.#byClient.get(clientId) ?? new Set();
    this.#byClient.set(clientId, sockets.add(client));
    const { clock, config } = this.#context;
    const silenceMs = config.limits.slow_reader_seconds * 1000;
    let isAlive = true;
    const beat = () => {
      if (!isAlive) return client.terminate();
      isAlive = false;
      client.ping();
      timer = clock.setTimer(silenceMs, beat);
    };
    let timer = clock.setTimer(silenceMs, beat);
    client.on("pong", () => {
      isAlive = true;
    });
    client.on("ping", () => this.#cutSlow(client));
    // a broken frame: the socket is closed by the package
    client.on("error", () => client.terminate());
    client.once("message", (data, isBinary) => {
      const flags = isBinary ? undefined : featureFlags(String(data));
      if (flags === undefined) return;
      if (flags.supports_preview_metadata === true) this.#readsMetadata.add(client);
      this.#write(client, JSON.stringify({ type: "feature_flags", data: this.#facts.features }));
    });
    client.once("close", () => {
      timer.cancel();
      sockets.delete(client);
      if (sockets.size === 0 && this.#byClient.get(clientId) === sockets) this.#byClient.delete(clientId);
    });
    try {
      const { type, data } = await this.#facts.status();
      this.#write(client, JSON.stringify({ type, data: { ...data, sid: clientId } }));
    } catch {
      // the store is gone: the client comes back
      client.close(GOING_AWAY);
    }
  }

  #write(client: WebSocket, data: string | Buffer, done: () => void = ignore): void {
    if (client.readyState !== client.OPEN) {
      done();
      return;
    }
    // a socket that is cut calls back too
    client.send(data, done);
    this.#cutSlow(client);
  }

  /** Cuts a socket that holds more unsent bytes than one reader may, or all together. */
  #cutSlow(client: WebSocket): void {
    const { slow_reader_bytes: mostOwn, streams_bytes: mostOfAll } = this.#context.config.limits;
    if (client.bufferedAmount <= FEW_BYTES) return;
    let all = 0;
    for (const sockets of this.#byClient.values()) for (const { bufferedAmount } of sockets) all += bufferedAmount;
    const most = mostOwn + (this.#allowance.get(client) ?? 0);
    if (client.bufferedAmount > most || all > mostOfAll) client.terminate();
  }
}

const ignore = () => undefined;

const queryOf = ({ url = "" }: IncomingMessage) => new URLSearchParams(/\?(.*)$/s.exec(url)?.[1] ?? "");

/** Features of a client that names them; undefined for any other message. */
function featureFlags(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const { type, data } = JSON.parse(text) as { type?: unknown; data?: unknown };
    return type === "feature_flags" && isPlainObject(data) ? data : undefined;
  } catch {
    return undefined;
  }
}

/** Numbers of 32 bits, big-endian. */
const numbers = (...values: readonly number[]): Buffer => {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [at, value] of values.entries()) bytes.writeUInt32BE(value, 4 * at);
  return bytes;
};

/** Sends a refusal where Node has no response, and closes the connection. */
function refuse(req: IncomingMessage, socket: Duplex, error: HookError, requestId: string): void {
  const res = new ServerResponse(req);
  res.shouldKeepAlive = false;
  try {
    res.assignSocket(req.socket);
  } catch {
    // another response of the application is on its way
    return void socket.destroy();
  }
  res.once("finish", () => {
    res.detachSocket(req.socket);
    closeLingering(socket);
  });
  SEND_ERROR.classic(req, res, error, requestId);
}
