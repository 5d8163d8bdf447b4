import { createConnection, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";

/** A TCP address in front of a PostgreSQL server, whose connections a test can break. */
export interface Proxy {
  readonly url: string;
  /** Breaks all connections; new ones are accepted. */
  cut(): void;
  /** Breaks the connection that sends this many messages from now on, at the last of them, which does not arrive. */
  cutAfter(messages: number): void;
  /** Forwards nothing that clients send, as a server that hangs. */
  freeze(isFrozen: boolean): void;
  /** Breaks all connections and accepts none. */
  stop(): Promise<void>;
  start(): Promise<void>;
  close(): Promise<void>;
}

export async function startProxy(url: string): Promise<Proxy> {
  const socketPath = join(new URL(url).searchParams.get("host")!, ".s.PGSQL.5432");
  const open = new Set<Socket>();
  let left = Number.POSITIVE_INFINITY;
  let isFrozen = false;
  let port = 0;
  let server: Server;
  const cut = () => {
    for (const socket of open) socket.destroy();
  };
  const connect = (client: Socket) => {
    const upstream = createConnection(socketPath);
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(one);
      one
        .on("error", () => undefined)
        .on("close", () => {
          open.delete(one);
          other.destroy();
        });
    }
    upstream.on("data", (bytes) => client.write(bytes));
    client.on("data", (bytes) => {
      if (isFrozen) return;
      left -= 1;
      if (left <= 0) client.destroy();
      else upstream.write(bytes);
    });
  };
  const start = () =>
    new Promise<void>((resolve) => {
      server = createServer(connect).listen(port, "127.0.0.1", () => {
        ({ port } = server.address() as { port: number });
        resolve();
      });
    });
  const stop = () =>
    new Promise<void>((resolve) => {
      cut();
      server.close(() => resolve());
    });
  await start();
  return {
    url: `postgres://latentkit@127.0.0.1:${port}/postgres`,
    cut,
    cutAfter: (messages) => {
      left = messages;
    },
    freeze: (value) => {
      isFrozen = value;
    },
    stop,
    start,
    close: stop,
  };
}
