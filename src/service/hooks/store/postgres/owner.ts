import { setTimeout as sleep } from "node:timers/promises";
import { HookError } from "../../hook-error.js";
import type { Connection } from "./connection.js";

/** Time after which another process may follow one that says nothing, by the server's clock. */
const LEASE_MS = 6000;
const RENEW_MS = 1500;
const POLL_MS = 250;
/** Stands for all processes that share a schema: no id is one word. */
const SHARED = "shared";

/**
 * Exclusive use of a schema: by the process whose own queue orders the runs, or by all that share it. It takes no lock: a
 * lock would belong to a session, which a pooler shares.
 */
export class Owner {
  readonly #db: Connection;
  readonly #process: string;
  #isShared = false;
  #timer: NodeJS.Timeout | undefined;
  #isLost = false;

  constructor(db: Connection, process: string) {
    this.#db = db;
    this.#process = process;
  }

  /** Waits for the end of a process that was killed. Rejects with store_unavailable where another one is alive. */
  async take(): Promise<void> {
    for (let before: unknown; !(await this.#renew()); await sleep(POLL_MS)) {
      const [row] = await this.#db.query("SELECT until::text FROM lk.owner WHERE id = 1");
      if (before !== undefined && row?.until !== before && row?.until !== null) throw refusal();
      before = row?.until;
    }
    this.#isLost = false;
    clearInterval(this.#timer);
    this.#timer = setInterval(() => void this.#keep(), RENEW_MS).unref();
  }

  /** As `take`, for a process that shares the schema. */
  async join(): Promise<void> {
    this.#isShared = true;
    await this.take();
  }

  /** Whether this process has the schema for itself. */
  get isHeld(): boolean {
    return this.#timer !== undefined && !this.#isLost && !this.#isShared;
  }

  /** Throws where another process has taken the schema since: this one was stopped for too long. */
  check(): void {
    if (this.#isLost) throw refusal();
  }

  async release(): Promise<void> {
    if (this.#timer === undefined) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    // others may share it: the last one's lease ends by itself
    if (this.#isShared) return;
    // the next process waits for the end of the lease where the server cannot be told
    await this.#db.query("UPDATE lk.owner SET until = NULL WHERE process = $1", this.#process).catch(() => undefined);
  }

  async #keep(): Promise<void> {
    try {
      this.#isLost = !(await this.#renew());
    } catch {
      // the lease may have ended when the server is back: then the next attempt tells
    }
  }

  async #renew(): Promise<boolean> {
    const sql = `UPDATE lk.owner SET process = $1, until = clock_timestamp() + $2 * interval '1 ms'
      WHERE id = 1 AND (process = $1 OR until IS NULL OR until < clock_timestamp()) RETURNING 1`;
    return (await this.#db.query(sql, this.#isShared ? SHARED : this.#process, LEASE_MS)).length > 0;
  }
}

const refusal = () => new HookError("store_unavailable", "another service process uses the store");
