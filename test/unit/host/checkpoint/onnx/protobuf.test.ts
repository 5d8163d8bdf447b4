import assert from "node:assert/strict";
import { ProtobufWriter } from "#src/host/checkpoint/onnx/protobuf.js";

/** Bytes of a message in hex. */
function encoded(write: (message: ProtobufWriter) => void): string {
  const message = new ProtobufWriter();
  write(message);
  return Buffer.from(message.finish()).toString("hex");
}

describe("ProtobufWriter", () => {
  it("writes the examples of the format's documentation", () => {
    assert.equal(
      encoded((message) => message.integer(1, 150)),
      "089601",
    );
    assert.equal(
      encoded((message) => message.text(2, "testing")),
      "120774657374696e67",
    );
    assert.equal(
      encoded((message) => message.message(3, (inner) => inner.integer(1, 150))),
      "1a03089601",
    );
    assert.equal(
      encoded((message) => message.integers(6, [3, 270, 86942])),
      "3206038e029ea705",
    );
  });

  it("writes negative integers as 64 bits, and integers of up to 2^53", () => {
    assert.equal(
      encoded((message) => message.integer(1, -2)),
      "08feffffffffffffffff01",
    );
    assert.equal(
      encoded((message) => message.integer(1, 0)),
      "0800",
    );
    assert.equal(
      encoded((message) => message.integer(1, 2 ** 40)),
      "08808080808020",
    );
    assert.equal(
      encoded((message) => message.integer(1, 2 ** 53 - 1)),
      "08ffffffffffffff0f",
    );
  });

  it("writes floats, tags of large fields, and nothing for an empty list but its length", () => {
    assert.equal(
      encoded((message) => message.float(2, 1.5)),
      "150000c03f",
    );
    assert.equal(
      encoded((message) => message.integer(20, 7)),
      "a00107",
    );
    assert.equal(
      encoded((message) => message.integers(1, [])),
      "0a00",
    );
  });

  it("keeps all bytes of a message larger than its first room", () => {
    const bytes = Uint8Array.from({ length: 10_000 }, (_, i) => i % 251);
    const text = encoded((message) => {
      message.bytes(9, bytes.subarray(0, 200));
      message.bytes(9, bytes);
    });
    assert.equal(text.slice(0, 6), "4ac801");
    assert.equal(text.slice(406), `4a904e${Buffer.from(bytes).toString("hex")}`);
  });
});
