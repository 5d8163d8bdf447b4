import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { PassThrough } from "node:stream";
import { eventFrame, readCursor, StreamMemory } from "#src/service/hooks/http/stream/stream-memory.js";
import { StreamWriter } from "#src/service/hooks/http/stream/stream-writer.js";
import { FakeClock, turns } from "../../../../../helpers/hooks/fake-clock.js";

/** A response whose reader takes bytes only when told to. */
function fakeReader() {
  const taken: string[] = [];
  let take: (() => void) | undefined;
  const stream = new PassThrough({ highWaterMark: 1 });
  const write = stream._write.bind(stream);
  stream._write = (chunk: Buffer, encoding, done) => {
    take = () => {
      taken.push(chunk.toString());
      write(chunk, encoding, done);
      stream.read();
    };
  };
  return {
    res: stream as unknown as ServerResponse,
    taken,
    takeOne: async () => {
      take?.();
      await turns();
    },
  };
}

const memory = () => new StreamMemory(1e6);
const SLOW_BYTES = 100;

describe("stream writer", () => {
  it("sends a comment every 15 s", async () => {
    const clock = new FakeClock();
    const { res, taken, takeOne } = fakeReader();
    new StreamWriter(res, clock, memory(), SLOW_BYTES);
    for (let i = 0; i < 3; i++) {
      await clock.advance(14_999);
      assert.equal(taken.length, i);
      await clock.advance(1);
      await takeOne();
      assert.deepEqual(taken.at(-1), ": keep-alive\n\n");
    }
  });

  it("is ready until too many bytes wait, then when all have left", async () => {
    const { res, takeOne } = fakeReader();
    const writer = new StreamWriter(res, new FakeClock(), memory(), SLOW_BYTES);
    writer.write("a".repeat(60));
    await writer.ready();
    writer.write("b".repeat(60));
    let isReady = false;
    const ready = writer.ready().then(() => {
      isReady = true;
    });
    await takeOne();
    assert.equal(isReady, false);
    await takeOne();
    await ready;
  });
});

describe("event frames", () => {
  it("line breaks of a stored event become blanks", () => {
    const frame = eventFrame({ id: 3, event: "a\nevent: done", data: '{"a":1,\r\n"b":2}\n\nid: 9' });
    assert.equal(frame, 'id: 3\nevent: a event: done\ndata: {"a":1, "b":2} id: 9\n\n');
  });

  it("a cursor is one integer, from the header first", () => {
    assert.deepEqual(readCursor("7", ["x"]), { after: 7, isResume: true });
    assert.deepEqual(readCursor(undefined, ["-9"]), { after: -1, isResume: false });
    assert.equal(readCursor(undefined, ["1", "2"]), undefined);
    assert.equal(readCursor("+7", []), undefined);
  });
});
