import { randomUUID } from "node:crypto";
import type { Connection } from "./connection.js";
import { type Client, createClient } from "./driver.js";

/** Time over which changes are collected: the server takes one notification at a time. */
const COLLECT_MS = 10;
const RECONNECT_MS = 1000;
const CONNECT_MS = 1500;
/** PostgreSQL takes less than 8,000 bytes. */
const MOST_BYTES = 7900;
/** Between the origin and the ids, of which none holds a line break as it is stored. */
const BREAK = "\n";

/** Called with the stored id of a run that has changed; with null if any may have. */
export type ChangeListener = (id: string | null) => void;

// Sent after the commit, every 10 ms at most: commits that notify take turns on the whole server.
/**
 * Hints from process to process that runs have changed, by NOTIFY and LISTEN. They may be late, doubled or lost: they
 * follow the commit instead of being part of it, since commits that notify wait for each other. A process does not hear
 * its own.
 */
export class Changes {
  readonly #db: Connection;
  readonly #url: string;
  readonly #channel: string;
  readonly #origin = randomUUID();
  readonly #listeners = new Set<ChangeListener>();
  readonly #changed = new Set<string>();
  #telling: Promise<void> | undefined;
  #client: Client | undefined;
  #retry: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** LISTEN belongs to a session: `url` leads to the server itself, not to a pooler of transactions. */
  constructor(db: Connection, url: string, channel: string) {
    this.#db = db;
    this.#url = url;
    this.#channel = channel;
  }

  tell(id: string): void {
    if (this.#isClosed) return;
    this.#changed.add(id);
    this.#telling ??= this.#tell().finally(() => {
      this.#telling = undefined;
    });
  }

  /** Keeps one connection of its own for all listeners. Returns the end of this one. */
  listen(listener: ChangeListener): () => void {
    // the same function may listen twice
    const own: ChangeListener = (id) => listener(id);
    this.#listeners.add(own);
    this.#connect();
    return () => {
      this.#listeners.delete(own);
      if (this.#listeners.size === 0) this.#disconnect();
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#listeners.clear();
    this.#disconnect();
    await this.#telling;
  }

  async #tell(): Promise<void> {
    while (this.#changed.size > 0) {
      await new Promise((resolve) => setTimeout(resolve, COLLECT_MS));
      const payload = [this.#origin, ...this.#changed].join(BREAK);
      this.#changed.clear();
      const text = Buffer.byteLength(payload) > MOST_BYTES ? this.#origin : payload;
      await this.#db.query("SELECT pg_notify($1, $2)", this.#channel, text).catch(() => undefined);
    }
  }

  #connect(): void {
    if (this.#client !== undefined || this.#isClosed || this.#listeners.size === 0) return;
    const client = createClient({
      connectionString: this.#url,
      connectionTimeoutMillis: CONNECT_MS,
      keepAlive: true,
      application_name: "latentkit listener",
    });
    this.#client = client;
    client.on("notification", ({ payload = "" }) => {
      const [origin, ...ids] = payload.split(BREAK);
      if (origin === this.#origin) return;
      for (const id of ids.length === 0 ? [null] : ids) this.#emit(id);
    });
    client.on("error", () => this.#reconnect(client));
    client.on("end", () => this.#reconnect(client));
    client
      .connect()
      .then(() => client.query(`LISTEN "${this.#channel}"`))
      // what happened before was not heard
      .then(() => this.#emit(null))
      .catch(() => this.#reconnect(client));
  }

  #reconnect(client: Client): void {
    if (this.#client !== client) return;
    this.#disconnect();
    this.#retry = setTimeout(() => this.#connect(), RECONNECT_MS).unref();
  }

  #disconnect(): void {
    clearTimeout(this.#retry);
    const client = this.#client;
    this.#client = undefined;
    client?.end().catch(() => undefined);
  }

  #emit(id: string | null): void {
    for (const listener of [...this.#listeners]) listener(id);
  }
}
