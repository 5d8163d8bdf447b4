import assert from "node:assert/strict";
import { decodePng } from "latentkit";
import { classicStarter, ended, picture, socketTo, submit } from "../../../../../helpers/hooks/classic-service.js";
import { until } from "../../../../../helpers/hooks/hook-service.js";

describe("messages to a prompt's client", () => {
  const start = classicStarter();

  it("SaveImageWebsocket's pictures come through the socket, larger than what a reader may leave unread", async () => {
    const service = await start({ limits: { slow_reader_bytes: 4096 } });
    const { socket, messages } = await socketTo(service);
    const frames: { readonly at: number; readonly bytes: Buffer }[] = [];
    socket.on("message", (data, isBinary) => {
      if (isBinary) frames.push({ at: messages.length, bytes: data as Buffer });
    });
    const graph = picture(7);
    graph[5].inputs = { width: 128, height: 128, batch_size: 2 };
    const prompt = { ...graph, 9: { class_type: "SaveImageWebsocket", inputs: { images: ["8", 0] } } };
    const { prompt_id: id } = await submit(service, prompt, { client_id: "me" });
    const entry = await ended(service, id);
    const isEnd = ({ type, data }: (typeof messages)[number]) => type === "executing" && data.node === null;
    await until(() => messages.some(isEnd), "the end");
    assert.equal(frames.length, 2);
    const started = messages.findIndex(({ type, data }) => type === "executing" && data.node === "9");
    const next = messages.findIndex(({ type }, at) => at > started && type === "execution_success");
    for (const { at, bytes } of frames) {
      assert.ok(at > started && at <= next, "between the start of its node and the end");
      assert.deepEqual([bytes.readUInt32BE(0), bytes.readUInt32BE(4)], [1, 2]);
      assert.ok(bytes.length > 4096);
      const { width, height } = await decodePng(bytes.subarray(8));
      assert.deepEqual([width, height], [128, 128]);
    }
    assert.equal(entry.outputs["9"]!.images!.length, 2);
  });
});
