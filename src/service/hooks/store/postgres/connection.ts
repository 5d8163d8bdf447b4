import { createHash } from "node:crypto";
import { HookError } from "../../hook-error.js";
import { createPool, type Pool, type PoolClient, type SqlRow, type SqlValue, withoutSecrets } from "./driver.js";
import { openSchema } from "./schema.js";

/** Time in which a connection must be free or made. */
const CONNECT_MS = 1500;
/** Time in which the server must answer a statement. */
const STATEMENT_MS = 5000;
/** Ends a transaction on the server whose process was stopped: others wait for its locks. */
const BEGIN = `BEGIN; SET LOCAL idle_in_transaction_session_timeout = ${STATEMENT_MS}; SET LOCAL lock_timeout = ${STATEMENT_MS}`;
const ATTEMPTS = 4;
/** The transaction was undone by the server and may be tried again: serialization failure, deadlock. */
const TRANSIENT = ["40001", "40P01"];
/** A pooler led to another session than the one that has the prepared statement: it does not exist, or exists already. */
const UNPREPARED = ["26000", "42P05"];

export interface ConnectionOptions {
  readonly url: string;
  readonly schema: string;
  readonly connections: number;
}

/** A connection or a transaction: what runs statements. */
export interface Queryable {
  query(sql: string, ...values: Values): Promise<SqlRow[]>;
}

/** Statements of one transaction. */
export interface Transaction extends Queryable {
  /** Lets the transaction end with a rollback, and with this result. */
  undo<T>(result: T): T;
}

interface Statement {
  readonly name: string;
  readonly text: string;
}

type Values = readonly (SqlValue | readonly SqlValue[])[];

// No statement depends on a session's state: locks are of rows or transactions, settings SET LOCAL. Planning a claim
// takes longer than running it, so statements are prepared; a name is a hash, since a pooler shares sessions.
/**
 * A bounded pool of connections to one schema, opened before the first statement; failures are HookErrors. A pooler may
 * give each transaction another session: once a session lacks a prepared statement, none is prepared any more.
 */
export class Connection {
  readonly #pool: Pool;
  readonly #url: string;
  readonly #schema: string;
  readonly #statements = new Map<string, Statement>();
  #isPrepared = true;
  #opening: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor({ url, schema, connections }: ConnectionOptions) {
    this.#url = url;
    this.#schema = schema;
    this.#pool = createPool({
      connectionString: url,
      max: connections,
      connectionTimeoutMillis: CONNECT_MS,
      query_timeout: STATEMENT_MS,
      keepAlive: true,
      application_name: "latentkit",
    });
    // a connection that breaks fails its statement, or is replaced by the next one; its event would end the process
    this.#pool.on("connect", (client) => client.on("error", () => undefined));
    this.#pool.on("error", () => undefined);
  }

  /** Connects and opens the schema. Rejects with config.invalid, or with what the server or the network said. */
  open(): Promise<void> {
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = undefined;
      throw withoutSecrets(error, this.#url);
    });
    return this.#opening;
  }

  /** Runs one statement, which is a transaction of its own. */
  query(sql: string, ...values: Values): Promise<SqlRow[]> {
    return this.#guard(() => this.#retrying(() => this.#run(this.#pool, sql, values)));
  }

  /** Runs `work` as one transaction, again where the server undid it for the sake of another one. */
  transaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    return this.#guard(() => this.#retrying(() => this.#once(work), TRANSIENT));
  }

  close(): Promise<void> {
    this.#closing ??= this.#pool.end();
    return this.#closing;
  }

  async #open(): Promise<void> {
    const client = await this.#pool.connect();
    try {
      await openSchema(client, this.#schema);
      client.release();
    } catch (error) {
      client.release(true);
      throw error;
    }
  }

  async #once<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    const client = await this.#begin();
    let end = "COMMIT";
    const query = (sql: string, ...values: Values) => this.#run(client, sql, values);
    const undo = <R>(result: R): R => {
      end = "ROLLBACK";
      return result;
    };
    try {
      const result = await work({ query, undo });
      await client.query(end);
      client.release();
      return result;
    } catch (error) {
      if (isTimeout(error)) client.release(true);
      else await rollBack(client);
      throw error;
    }
  }

  /** Begins on a connection that works: one that was idle may have broken unnoticed, and nothing is lost with it. */
  async #begin(): Promise<PoolClient> {
    for (let attempt = 1; ; attempt++) {
      const client = await this.#pool.connect();
      try {
        await client.query(BEGIN);
        return client;
      } catch (error) {
        client.release(true);
        if (attempt > 1 || isTimeout(error)) throw error;
      }
    }
  }

  async #retrying<T>(work: () => Promise<T>, transient: readonly string[] = []): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        const code = codeOf(error);
        const isUnprepared = UNPREPARED.includes(code);
        if (isUnprepared) this.#isPrepared = false;
        if (attempt >= ATTEMPTS || !(isUnprepared || transient.includes(code))) throw error;
      }
    }
  }

  async #run(client: Pool | PoolClient, sql: string, values: Values): Promise<SqlRow[]> {
    const { name, text } = this.#statement(sql);
    const { rows } = await client.query({
      name: this.#isPrepared ? name : undefined,
      text,
      values: values as unknown[],
    });
    return rows as SqlRow[];
  }

  #statement(sql: string): Statement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      const text = sql.replaceAll("lk.", `${this.#schema}.`);
      statement = { name: createHash("sha256").update(text).digest("base64url"), text };
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  async #guard<T>(work: () => Promise<T>): Promise<T> {
    try {
      if (this.#closing !== undefined) throw new Error("the store is closed");
      await this.open();
      return await work();
    } catch (error) {
      if (error instanceof HookError) throw error;
      throw new HookError("store_unavailable", undefined, { cause: withoutSecrets(error, this.#url) });
    }
  }
}

/** Returns a connection to the pool, or drops one whose state is not known. */
async function rollBack(client: PoolClient): Promise<void> {
  try {
    await client.query("ROLLBACK");
    client.release();
  } catch {
    client.release(true);
  }
}

/** Whether `pg` gave up waiting: its connection still waits for the answer. */
const isTimeout = (error: unknown): boolean => /timeout/i.test(String(error)) && codeOf(error) === "";

const codeOf = (error: unknown): string => String((error as { code?: unknown } | null)?.code ?? "");
