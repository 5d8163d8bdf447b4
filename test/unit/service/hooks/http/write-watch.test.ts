import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import { watchWrites } from "#src/service/hooks/http/connection.js";
import { FakeClock } from "../../../../helpers/hooks/fake-clock.js";

function watched() {
  const clock = new FakeClock();
  const socket = {
    bytesWritten: 0,
    writableLength: 0,
    _handle: { writeQueueSize: 0 },
    isCut: false,
    destroy() {
      socket.isCut = true;
      return socket as never;
    },
  };
  const res = new EventEmitter();
  watchWrites(socket, res as unknown as ServerResponse, clock, 20);
  const write = (bytes: number) => {
    socket.bytesWritten += bytes;
    socket.writableLength += bytes;
    socket._handle.writeQueueSize += bytes;
  };
  return { clock, socket, res, write };
}

describe("watched writes", () => {
  it("a client that reads nothing is cut within 1.25 of the time limit", async () => {
    const { clock, socket, write } = watched();
    await clock.advance(7_000);
    write(1000);
    await clock.advance(19_999);
    assert.equal(socket.isCut, false);
    await clock.advance(8_001);
    assert.equal(socket.isCut, true);
    assert.equal(clock.timers, 0);
  });

  it("a client that reads, or has nothing to read, is not cut", async () => {
    const { clock, socket, write } = watched();
    await clock.advance(100_000);
    write(1000);
    for (let i = 0; i < 20; i++) {
      await clock.advance(14_000);
      // a part of one write, and then the whole of it with another one behind
      if (i % 2 === 0) socket._handle.writeQueueSize -= 10;
      else {
        socket.writableLength = 0;
        socket._handle.writeQueueSize = 0;
        write(1000);
      }
    }
    assert.equal(socket.isCut, false);
  });

  it("added bytes do not count as progress", async () => {
    const { clock, socket, write } = watched();
    write(1000);
    for (let i = 0; i < 3; i++) {
      await clock.advance(10_000);
      socket.bytesWritten += 5;
      socket.writableLength += 5;
    }
    assert.equal(socket.isCut, true);
  });

  it("stops at the end of the response", () => {
    const { clock, res } = watched();
    res.emit("close");
    assert.equal(clock.timers, 0);
  });
});
