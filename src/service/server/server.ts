import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import type { Express, NextFunction, Request, Response } from "express";
import { LatentkitError } from "../../base/errors.js";
import { loadExpress } from "../../base/lazy.js";
import { CHECKED_LATER, checkOptions, hasMethods, type OptionRules } from "../../base/options.js";
import { parseConfig } from "../../render/config/config.js";
import { systemClock } from "../hooks/clock.js";
import { type HookLog, type Limits, LOGGER } from "../hooks/hook-config.js";
import { HookError, REFUSALS } from "../hooks/hook-error.js";
import type { HookService } from "../hooks/hook-service.js";
import { AWAITS_CONTINUE } from "../hooks/http/body.js";
import { enterConnection, prepareResponse } from "../hooks/http/connection.js";
import { hostRefusal } from "../hooks/http/gate.js";
import { errorBody, sendError, sendJson } from "../hooks/http/responses.js";
import { createLogger } from "../log.js";
import { parseInPieces, passUpgrades, sendRawError } from "./raw-connection.js";

/** Room for a token of 16 KiB, which is refused as wrong, not as too large, and for a client's usual headers. */
const MAX_HEADER_BYTES = 18 * 1024;
/** Connections beyond those of streams: idle ones and requests. */
const SPARE_CONNECTIONS = 1024;
/** After these the client has to open a new connection, so that every connection ends some day. */
const REQUESTS_PER_CONNECTION = 1000;
const CHECK_MS = 500;
const LAST_BYTES_MS = 1000;
/** Faults of an address that people meet, with what to do. */
const LISTEN_FAULTS: ReadonlyMap<string, string> = new Map([
  ["EADDRINUSE", "the port is already in use (EADDRINUSE); stop the other program or choose another port"],
  ["EADDRNOTAVAIL", "this machine does not have the address (EADDRNOTAVAIL)"],
  ["EACCES", "not allowed to use this port (EACCES); choose one above 1023"],
  ["ERR_SERVER_ALREADY_LISTEN", "this server listens already"],
]);

/** Options of `createServer`. */
export interface ServerOptions {
  /** The router, and what ends with the server: a hook service, or a worker. */
  readonly hooks: Pick<HookService, "router" | "close" | "upgrade">;
  /** Address to listen on. Default: 127.0.0.1. */
  readonly host?: string;
  /** Port, 0 for any free one. Default: 8188. */
  readonly port?: number;
  /** Those of connections, as the service has them. Default: those of docs/configuration.md. */
  readonly limits?: Partial<Limits>;
  /** A pino logger, or one like it. Default: warnings and errors to stderr. */
  readonly logger?: HookLog;
}

/** A server around a hook service. */
export interface ListeningServer {
  readonly server: Server;
  /**
   * Resolves once the server accepts connections. Fails with config.invalid if the address is not available, and with
   * usage.invalid after `close`.
   */
  listen(): Promise<{ host: string; port: number; url: string }>;
  /** Refuses starts with 503 while running agents end (at most `drainSeconds`), then closes hooks, streams and sockets. */
  close(drainSeconds?: number): Promise<void>;
}

const SERVER_RULES: OptionRules<ServerOptions> = {
  hooks: ["a hook service, as createHookService makes one", isHookService],
  host: CHECKED_LATER,
  port: CHECKED_LATER,
  limits: CHECKED_LATER,
  logger: LOGGER,
};

function isHookService(value: unknown): boolean {
  return hasMethods(value, "close") && typeof (value as { router?: unknown }).router === "function";
}

/** Creates a Node HTTP server for the hook service: every response is JSON, also to slow, huge and malformed requests. */
export function createServer(options: ServerOptions): ListeningServer {
  checkOptions("createServer", options, SERVER_RULES, ["hooks"]);
  const { hooks, logger: log = createLogger({ level: "warn" }) } = options;
  const { host, port, limits } = parseConfig(
    { host: options.host, port: options.port, limits: options.limits },
    "createServer",
  );
  const app = createApp(hooks, log);
  const enter = (req: IncomingMessage, res: ServerResponse) =>
    enterConnection(req, res, { clock: systemClock, seconds: limits.slow_reader_seconds });
  const headersTimeout = limits.header_seconds * 1000;
  const server = createHttpServer(
    {
      maxHeaderSize: MAX_HEADER_BYTES,
      // checked below: Node's own response has no body
      requireHostHeader: false,
      headersTimeout,
      // of a whole request of any size: the reader of a body limits its time (hooks/http/arrival.ts), and so does a
      // connection that lingers
      requestTimeout: 0,
      connectionsCheckingInterval: Math.min(CHECK_MS, headersTimeout),
    },
    // before any work for a request: pipelined requests beyond the limit are cut here
    async (req, res) => void ((await enter(req, res)) && app(req, res)),
  );
  server.maxConnections = limits.streams + SPARE_CONNECTIONS;
  server.maxRequestsPerSocket = REQUESTS_PER_CONNECTION;
  if (hooks.upgrade !== undefined) passUpgrades(server, hooks.upgrade);
  parseInPieces(server);
  handleExpectAndConnect(server, enter);
  handleClientErrors(server, log);
  let closed: Promise<void> | undefined;
  return {
    server,
    async listen() {
      // its hooks would refuse every request
      if (closed !== undefined)
        throw new LatentkitError("usage.invalid", "listen: the server was closed; createServer makes a new one.");
      try {
        server.listen(port, host);
        await once(server, "listening");
      } catch (cause) {
        const code = (cause as NodeJS.ErrnoException).code ?? String(cause);
        const reason = LISTEN_FAULTS.get(code) ?? code;
        throw new LatentkitError("config.invalid", `Cannot listen on ${host}, port ${port}: ${reason}.`, {}, { cause });
      }
      const bound = server.address() as AddressInfo;
      const name = bound.family === "IPv6" ? `[${bound.address}]` : bound.address;
      return { host: bound.address, port: bound.port, url: `http://${name}:${bound.port}` };
    },
    close(drainSeconds) {
      closed ??= closeAll(server, hooks, drainSeconds);
      return closed;
    },
  };
}

function createApp(hooks: ServerOptions["hooks"], log: HookLog): Express {
  const app = loadExpress()().disable("x-powered-by").disable("etag");
  const refuse = async (req: Request, res: Response, error: HookError) => {
    await prepareResponse(req, res, systemClock);
    sendError(req, res, error, randomUUID());
  };
  app.use((req, res, next) => {
    const sentence = hostRefusal(req);
    return sentence === undefined ? next() : refuse(req, res, new HookError("invalid_request", sentence));
  });
  app.use(hooks.router);
  app.use((req, res) => refuse(req, res, new HookError("not_found")));
  app.use((error: unknown, req: Request, res: Response, _next: NextFunction) => {
    log.error({ err: error }, "request failed");
    if (res.headersSent) res.destroy();
    else refuse(req, res, new HookError("internal"));
  });
  return app;
}

/**
 * Handles requests that Node emits as other events. `readJsonBody` sends "100 Continue", so a request without a token
 * never sends its body.
 */
function handleExpectAndConnect(
  server: Server,
  enter: (req: IncomingMessage, res: ServerResponse) => Promise<boolean>,
): void {
  server.on("checkContinue", (req: IncomingMessage & { [AWAITS_CONTINUE]?: boolean }, res: ServerResponse) => {
    req[AWAITS_CONTINUE] = true;
    server.emit("request", req, res);
  });
  // without a listener, Node would cut the connection without a response
  server.on("connect", (_req: IncomingMessage, socket: Duplex) =>
    sendRawError(socket, 400, "this server is not a proxy"),
  );
  server.on("checkExpectation", async (req: IncomingMessage, res: ServerResponse) => {
    if (!(await enter(req, res))) return;
    await prepareResponse(req, res, systemClock);
    const error = new HookError("invalid_request", "only Expect: 100-continue is supported");
    sendJson(req, res, { status: 417, body: errorBody(error, randomUUID()) });
  });
}

/** Handles refusals of Node's parser, before there is a request: slow or oversized headers, broken HTTP. */
function handleClientErrors(server: Server, log: HookLog): void {
  const busy = new WeakMap<Duplex, ServerResponse>();
  server.prependListener("request", (req: IncomingMessage, res: ServerResponse) => {
    busy.set(req.socket, res);
    res.once("close", () => busy.delete(req.socket));
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Duplex) => {
    log.debug({ code: error.code }, "connection refused");
    // no second response may follow one that has begun
    if (!socket.writable || error.code === "ECONNRESET" || busy.get(socket)?.headersSent) return void socket.destroy();
    if (error.code === "ERR_HTTP_REQUEST_TIMEOUT") return sendRawError(socket, 408, REFUSALS.request_timeout.sentence);
    if (error.code === "HPE_HEADER_OVERFLOW") return sendRawError(socket, 431, "the headers are too large");
    sendRawError(socket, 400, "the request is not valid HTTP");
  });
}

async function closeAll(
  server: Server,
  hooks: ServerOptions["hooks"],
  drainSeconds: number | undefined,
): Promise<void> {
  try {
    await hooks.close(drainSeconds);
  } finally {
    const closed = server.listening ? once(server, "close") : undefined;
    server.close();
    // streams send their last frame and requests their response; then sockets are closed
    const cut = systemClock.setTimer(LAST_BYTES_MS, () => server.closeAllConnections());
    server.closeIdleConnections();
    await closed;
    cut.cancel();
  }
}
