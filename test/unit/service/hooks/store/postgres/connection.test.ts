import assert from "node:assert/strict";
import { Connection } from "#src/service/hooks/store/postgres/connection.js";
import { newSchema, postgres } from "../../../../../helpers/postgres/cluster.js";

describe("Connection", () => {
  const url = postgres();
  let db: Connection;
  const prepared = async () => (await db.query("SELECT statement FROM pg_prepared_statements")).length;

  beforeEach(() => {
    db = new Connection({ url, schema: newSchema(), connections: 1 });
  });
  afterEach(() => db.close());

  it("prepares each statement once", async () => {
    for (let i = 0; i < 3; i++) assert.deepEqual(await db.query("SELECT $1::int + 1 AS sum", i), [{ sum: i + 1 }]);
    assert.equal(await prepared(), 2);
  });

  it("prepares none any more once a pooler leads to a session that lacks one", async () => {
    await db.query("SELECT $1::int + 1 AS sum", 1);
    await db.query("DEALLOCATE ALL");
    assert.deepEqual(await db.query("SELECT $1::int + 1 AS sum", 2), [{ sum: 3 }]);
    await db.query("SELECT 1");
    await db.query("DEALLOCATE ALL");
    assert.equal(await prepared(), 0);
  });

  it("repeats a transaction that such a session has undone", async () => {
    const setPaused = "UPDATE lk.queue SET paused = NOT paused RETURNING paused";
    assert.deepEqual(await db.query(setPaused), [{ paused: true }]);
    await db.query("SELECT paused FROM lk.queue");
    await db.query("DEALLOCATE ALL");
    const rows = await db.transaction(async (tx) => {
      await tx.query("UPDATE lk.queue SET per_session = per_session + 1");
      return tx.query(setPaused);
    });
    assert.deepEqual(rows, [{ paused: false }]);
    assert.deepEqual(await db.query("SELECT paused, per_session FROM lk.queue"), [{ paused: false, per_session: 2 }]);
  });
});
