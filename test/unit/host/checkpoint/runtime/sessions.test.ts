import assert from "node:assert/strict";
import { sessionBytes } from "#src/host/checkpoint/runtime/plan.js";
import { LoadedSessions, workBytes } from "#src/host/checkpoint/runtime/sessions.js";
import { plusOneSource } from "../../../../helpers/models/runtime-graphs.js";

const PARAMETERS = 1000;
const source = (key: string) => ({ ...plusOneSource(key), parameters: PARAMETERS });
const EACH = sessionBytes(source(""), "fold");

describe("LoadedSessions", () => {
  const loaded = (...keys: string[]) => {
    const sessions = new LoadedSessions();
    for (const key of keys)
      sessions.add({ ...sessions.next(source(key), "fold"), ports: { inputs: [], outputs: [] }, arenaBytes: 0 });
    return sessions;
  };
  const weights = (bytes: number) => ({ weights: bytes, free: Number.POSITIVE_INFINITY });
  const free = (bytes: number) => ({ weights: Number.POSITIVE_INFINITY, free: bytes });
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
    assert.deepEqual(keys(sessions.surplus(weights(2 * EACH), [], { bytes: EACH })), ["b", "c"]);
  });

  it("names no surplus where the budget suffices, and all at most", () => {
    const sessions = loaded("a", "b");
    assert.deepEqual(sessions.surplus(weights(3 * EACH), [], { bytes: EACH }), []);
    assert.deepEqual(keys(sessions.surplus(weights(0), [], { bytes: EACH })), ["a", "b"]);
  });

  it("names folded ones, oldest first, whose memory the pages of a streamed one need", () => {
    const sessions = loaded("a", "b");
    sessions.add({
      ...sessions.next(source("streamed"), "stream"),
      bytes: 1,
      ports: { inputs: [], outputs: [] },
      arenaBytes: 0,
    });
    const next = { bytes: 1, pages: 2 * EACH };
    assert.deepEqual(sessions.surplus(free(2 * EACH), [], next), []);
    assert.deepEqual(keys(sessions.surplus(free(EACH), [], next)), ["a"]);
    assert.deepEqual(keys(sessions.surplus(free(0), [], next)), ["a", "b"]);
  });

  it("names those whose memory a run needs, that of their own runs included, and none for a run that fits", () => {
    const sessions = loaded("a", "b", "c");
    const [first, second] = sessions.all;
    second!.arenaBytes = EACH;
    assert.equal(sessions.heldBytes(), 4 * EACH);
    assert.equal(sessions.heldBytes([second!]), 2 * EACH);
    assert.deepEqual(sessions.surplus(free(0)), []);
    assert.deepEqual(keys(sessions.surplus(free(-2.5 * EACH))), ["a", "b"]);
    assert.deepEqual(keys(sessions.surplus(free(-2.5 * EACH), [first!])), ["b", "c"]);
  });

  it("names those beyond sixteen, however small they are", () => {
    const sessions = loaded(...Array.from({ length: 16 }, (_, index) => String(index)));
    assert.deepEqual(keys(sessions.surplus(weights(100 * EACH), [], { bytes: EACH })), ["0"]);
    sessions.remove(sessions.use("3", "fold")!);
    assert.deepEqual(sessions.surplus(weights(100 * EACH), [], { bytes: EACH }), []);
  });

  it("tells plans of one network apart", () => {
    const sessions = loaded("a");
    assert.equal(sessions.use("a", "stream"), undefined);
    sessions.remove(sessions.use("a", "fold")!);
    assert.equal(sessions.use("a", "fold"), undefined);
    assert.equal(sessions.bytes, 0);
  });
});

describe("workBytes", () => {
  it("counts the values of inputs, and a gibibyte where a network does not tell", () => {
    const work = { x: 10, context: 1 };
    assert.equal(workBytes({ ...source("a"), work }, { x: { shape: [2, 3] }, y: { shape: [9] } }), 60);
    assert.equal(workBytes({ ...source("a"), work }, { x: { shape: [2, 3] }, context: { shape: [1, 77, 2] } }), 214);
    assert.equal(workBytes(source("a"), { x: { shape: [2, 3] } }), 2 ** 30);
  });
});
