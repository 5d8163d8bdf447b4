import assert from "node:assert/strict";
import { sessionBytes } from "#src/host/checkpoint/runtime/plan.js";
import { LoadedSessions } from "#src/host/checkpoint/runtime/sessions.js";
import { plusOneSource } from "../../../../helpers/models/runtime-graphs.js";

const PARAMETERS = 1000;
const source = (key: string) => ({ ...plusOneSource(key), parameters: PARAMETERS });
const EACH = sessionBytes(source(""), "fold");

describe("LoadedSessions", () => {
  const loaded = (...keys: string[]) => {
    const sessions = new LoadedSessions();
    for (const key of keys) sessions.add({ ...sessions.next(source(key), "fold"), ports: { inputs: [], outputs: [] } });
    return sessions;
  };
  const keys = (sessions: readonly { key: string }[]) => sessions.map(({ key }) => key);

  it("gives each session a number of its own", () => {
    assert.deepEqual(
      loaded("a", "b").all.map(({ number }) => number),
      [0, 1],
    );
  });

  it("sums up the bytes of its sessions", () => {
    assert.equal(loaded("a", "b").bytes, 2 * EACH);
  });

  it("has the least recently used first", () => {
    const sessions = loaded("a", "b", "c");
    assert.equal(sessions.use("a", "fold")?.key, "a");
    assert.deepEqual(keys(sessions.all), ["b", "c", "a"]);
    assert.deepEqual(keys(sessions.surplus({ bytes: EACH }, 2 * EACH)), ["b", "c"]);
  });

  it("names no surplus where the budget suffices, and all at most", () => {
    const sessions = loaded("a", "b");
    assert.deepEqual(sessions.surplus({ bytes: EACH }, 3 * EACH), []);
    assert.deepEqual(keys(sessions.surplus({ bytes: EACH }, 0)), ["a", "b"]);
  });

  it("names folded ones, oldest first, whose memory the pages of a streamed one need", () => {
    const sessions = loaded("a", "b");
    sessions.add({ ...sessions.next(source("streamed"), "stream"), bytes: 1, ports: { inputs: [], outputs: [] } });
    const next = { bytes: 1, pages: 2 * EACH };
    assert.deepEqual(sessions.surplus(next, 5 * EACH), []);
    assert.deepEqual(keys(sessions.surplus(next, 3.5 * EACH)), ["a"]);
    assert.deepEqual(keys(sessions.surplus(next, EACH)), ["a", "b"]);
  });

  it("names those beyond sixteen, however small they are", () => {
    const sessions = loaded(...Array.from({ length: 16 }, (_, index) => String(index)));
    assert.deepEqual(keys(sessions.surplus({ bytes: EACH }, 100 * EACH)), ["0"]);
    sessions.remove(sessions.use("3", "fold")!);
    assert.deepEqual(sessions.surplus({ bytes: EACH }, 100 * EACH), []);
  });

  it("tells plans of one network apart", () => {
    const sessions = loaded("a");
    assert.equal(sessions.use("a", "stream"), undefined);
    sessions.remove(sessions.use("a", "fold")!);
    assert.equal(sessions.use("a", "fold"), undefined);
    assert.equal(sessions.bytes, 0);
  });
});
