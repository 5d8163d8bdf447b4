import assert from "node:assert/strict";
import { type BytesMessage, bytesOf, ReceivedBytes, sendBytes } from "#src/host/checkpoint/runtime/protocol.js";

describe("sendBytes and ReceivedBytes", () => {
  const sent = async (bytes: Uint8Array) => {
    const messages: BytesMessage[] = [];
    await sendBytes(3, bytes, async (message) => {
      messages.push(message);
    });
    return messages;
  };

  for (const length of [0, 1, 2 ** 18, 2 ** 18 + 1, 700_000]) {
    it(`carry ${length} bytes in parts of 256 KiB at most`, async () => {
      const bytes = Uint8Array.from({ length }, (_, i) => i % 251);
      const messages = await sent(bytes);
      assert.equal(messages.length, Math.max(1, Math.ceil(length / 2 ** 18)));
      assert.ok(messages.every((message) => message.bytes.length <= 2 ** 18));
      const received = new ReceivedBytes((size) => new ArrayBuffer(size));
      for (const message of messages) received.add(message);
      assert.deepEqual(new Uint8Array(received.get(3)), bytes);
    });
  }

  it("have no bytes of a number that was dropped", async () => {
    const received = new ReceivedBytes((size) => new ArrayBuffer(size));
    for (const message of await sent(Uint8Array.of(1))) received.add(message);
    received.drop(3);
    assert.throws(() => received.get(3), /bytes 3 were not sent/);
  });
});

describe("bytesOf", () => {
  it("views a part of a buffer", () => {
    const values = new Float32Array(4).subarray(1, 3);
    const bytes = bytesOf(values);
    assert.deepEqual([bytes.byteOffset, bytes.length, bytes.buffer === values.buffer], [4, 8, true]);
  });
});
