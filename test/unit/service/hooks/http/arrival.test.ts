import assert from "node:assert/strict";
import { Arrival } from "#src/service/hooks/http/arrival.js";
import { FakeClock } from "../../../../helpers/hooks/fake-clock.js";

const PIECE = 64 * 1024;

describe("Arrival", () => {
  /** Takes pieces of bytes, each after a time, until one is late. Returns the number of pieces. */
  const piecesOf = async (bytes: number, afterMs: number, most: number, workMs = 0) => {
    const clock = new FakeClock();
    const arrival = new Arrival({ silenceMs: 10_000, bytesPerSecond: 8192, clock });
    let isLate = false;
    for (let piece = 0; piece < most; piece++) {
      arrival.wait(() => {
        isLate = true;
      });
      await clock.advance(afterMs);
      if (isLate) return piece;
      arrival.end(bytes);
      await clock.advance(workMs);
    }
    assert.equal(clock.timers, 0);
    return most;
  };

  it("is never late for 100 MiB at 2 Mbit a second, nor at the least rate", async () => {
    const pieces = (100 * 2 ** 20) / PIECE;
    assert.equal(await piecesOf(PIECE, (PIECE / 250_000) * 1000, pieces), pieces);
    assert.equal(await piecesOf(PIECE, 8000, 100), 100);
  });

  it("is late for a client that sends a little before each silence is over", async () => {
    assert.equal(await piecesOf(1, 999, 100), 10);
    assert.equal(await piecesOf(8192 * 8.5, 9000, 100), 2);
  });

  it("is late after a silence, however fast the bytes before it were", async () => {
    assert.equal(await piecesOf(2 ** 30, 10_000, 3), 0);
    assert.equal(await piecesOf(2 ** 30, 9999, 3), 3);
  });

  it("does not count what is done with the bytes", async () => {
    assert.equal(await piecesOf(8192, 900, 100, 60_000), 100);
  });
});
