import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import WebSocket from "ws";
import { systemClock } from "#src/service/hooks/clock.js";
import { Sockets } from "#src/service/hooks/comfy/classic/sockets.js";
import { StreamSlots } from "#src/service/hooks/http/stream/stream-writer.js";
import { until } from "../../../../../helpers/hooks/hook-service.js";

describe("WebSockets of the classic API", () => {
  const closers: (() => void)[] = [];
  afterEach(() => {
    for (const close of closers.splice(0)) close();
  });

  const open = async (limits: object, clients: readonly string[]) => {
    const all = { streams: 100, streams_per_run: 10, slow_reader_seconds: 600, ...limits };
    const slots = new StreamSlots(all as never);
    const context = {
      clock: systemClock,
      slots,
      newId: () => "id",
      runs: { closing: false },
      log: { error() {} },
      config: { limits: all, web: { comfy_classic: "open" } },
    };
    const status = async () => ({ type: "status", data: {} });
    const sockets = new Sockets(context as never, { access: "open", features: {}, status });
    const server = createServer().on("upgrade", (req, socket, head) => void sockets.upgrade(req, socket, head));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const opened = [];
    for (const id of clients) {
      const client = new WebSocket(`ws://127.0.0.1:${port}/ws?clientId=${id}`);
      client.on("error", () => undefined);
      closers.push(() => client.terminate());
      await once(client, "message");
      opened.push(client);
    }
    closers.push(() => server.close());
    return { sockets, slots, opened };
  };
  const big = { type: "executed", data: { text: "x".repeat(1_000_000) } };

  it("a reader that does not read is cut, others are not", async () => {
    const { sockets, slots, opened } = await open({ slow_reader_bytes: 2_000_000, streams_bytes: 1e9 }, [
      "slow",
      "fast",
    ]);
    const [slow, fast] = opened;
    slow!.pause();
    for (let i = 0; i < 100 && sockets.size === 2; i++) {
      sockets.send("slow", big);
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.equal(sockets.size, 1);
    assert.equal(slots.size, 1);
    const message = once(fast!, "message");
    sockets.broadcast({ type: "status", data: {} });
    await message;
  });

  it("unsent bytes of all sockets together are bounded", async () => {
    const ids = ["a", "b", "c", "d"];
    const { sockets, opened } = await open({ slow_reader_bytes: 1e9, streams_bytes: 8_000_000 }, ids);
    for (const client of opened) client.pause();
    for (let i = 0; i < 100 && sockets.size === 4; i++) {
      sockets.broadcast(big);
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.ok(sockets.size < 4);
  });

  it("a picture may be larger than what a reader may leave unread, and ends with a reader that takes none of it", async () => {
    const limits = { slow_reader_bytes: 1000, streams_bytes: 1e9, slow_reader_seconds: 5 };
    const { sockets, opened } = await open(limits, ["fast", "slow"]);
    const [fast, slow] = opened;
    const png = Buffer.alloc(30_000_000, 7);
    const read = once(fast!, "message");
    await sockets.picture("fast", png, {});
    assert.equal(((await read) as [Buffer])[0].length, png.length + 8);
    slow!.pause();
    await sockets.picture("slow", png, {});
    await until(() => !sockets.has("slow"), "the cut");
    assert.ok(sockets.has("fast"));
    await sockets.picture("slow", png, {});
  });

  it("a socket that is behind does without previews", async () => {
    const { sockets, opened } = await open({ slow_reader_bytes: 1e9, streams_bytes: 1e9 }, ["me"]);
    const [client] = opened;
    const kinds: boolean[] = [];
    client!.on("message", (_data, isBinary) => kinds.push(isBinary));
    sockets.preview("me", Buffer.from("first"), {});
    await until(() => kinds.length === 1, "the first preview");
    client!.pause();
    for (let i = 0; i < 30; i++) sockets.send("me", big);
    sockets.preview("me", Buffer.from("second"), {});
    client!.resume();
    await until(() => kinds.length === 31, "the messages");
    assert.deepEqual(kinds, [true, ...new Array<boolean>(30).fill(false)]);
  });
});
