import assert from "node:assert/strict";
import { EventBuffer, readProgress } from "#src/service/hooks/runs/task/event-writer.js";

const KEEP = { events: 5, bytes: 1000 };
const texts = (batch: { events: readonly { data: string }[] }) => batch.events.map(({ data }) => data).join("");

describe("EventBuffer", () => {
  it("returns events in order and is empty afterwards", () => {
    const buffer = new EventBuffer(KEEP);
    assert.equal(buffer.isEmpty, true);
    for (const text of ["a", "b"]) buffer.add("delta", text);
    buffer.addFile({ name: "f", path: "/f", contentType: null });
    const batch = buffer.take();
    assert.equal(texts(batch), "ab");
    assert.deepEqual([batch.skip, batch.files.length, buffer.isEmpty], [0, 1, true]);
  });

  it("holds no more events or bytes than the store, counts dropped ones", () => {
    const buffer = new EventBuffer(KEEP);
    for (let i = 0; i < 8; i++) buffer.add("delta", String(i));
    const batch = buffer.take();
    assert.deepEqual([texts(batch), batch.skip], ["34567", 3]);
    for (let i = 0; i < 3; i++) buffer.add("delta", String(i).repeat(400));
    assert.deepEqual([buffer.take().skip, buffer.isEmpty], [1, true]);
    buffer.add("delta", "x".repeat(5000));
    assert.equal(texts(buffer.take()).length, 5000);
  });

  it("has the newest progress once, also of dropped events", () => {
    const buffer = new EventBuffer(KEEP);
    const tell = (value: number) => buffer.add("progress", JSON.stringify({ value, max: 20, node: "3" }));
    for (let i = 0; i < 8; i++) tell(i);
    buffer.add("progress", '"nonsense"');
    for (let i = 0; i < 8; i++) buffer.add("delta", String(i));
    const batch = buffer.take();
    assert.deepEqual(batch.progress, { value: 7, max: 20, node: "3" });
    tell(8);
    buffer.restore(batch);
    assert.equal(buffer.take().progress?.value, 8);
    buffer.add("delta", "x");
    assert.equal(buffer.take().progress, undefined);
    buffer.restore({ ...batch, skip: 0 });
    assert.equal(buffer.take().progress?.value, 7);
  });

  it("takes no more than one transaction should carry", () => {
    const buffer = new EventBuffer({ events: 10_000, bytes: 1e9 });
    for (let i = 0; i < 1200; i++) buffer.add("delta", "x");
    assert.equal(buffer.isShort, false);
    assert.deepEqual(
      [buffer.take(), buffer.take(), buffer.take()].map(({ events }) => events.length),
      [500, 500, 200],
    );
    for (let i = 0; i < 3; i++) buffer.add("delta", "x".repeat(700_000));
    assert.equal(buffer.take().events.length, 2);
    assert.equal(buffer.isShort, true);
    assert.equal(buffer.take().events.length, 1);
  });

  it("puts a failed batch back in front", () => {
    const buffer = new EventBuffer(KEEP);
    for (const text of ["a", "b"]) buffer.add("delta", text);
    buffer.addFile({ name: "f", path: "/f", contentType: null });
    const batch = buffer.take();
    for (const text of ["c", "d"]) buffer.add("delta", text);
    buffer.restore(batch);
    const again = buffer.take();
    assert.deepEqual([texts(again), again.skip, again.files.length], ["abcd", 0, 1]);
  });

  it("drops a restored batch if later events were dropped, keeps all ids", () => {
    const buffer = new EventBuffer(KEEP);
    for (let i = 0; i < 4; i++) buffer.add("delta", "a");
    const batch = buffer.take();
    for (let i = 0; i < 7; i++) buffer.add("delta", String(i));
    buffer.restore(batch);
    const again = buffer.take();
    assert.deepEqual([texts(again), again.skip], ["23456", 6]);
    // 4 + 7 ids in all
    assert.equal(again.skip + again.events.length, 11);
  });

  it("trims the head of a restored batch that exceeds the limits", () => {
    const buffer = new EventBuffer(KEEP);
    for (const text of ["a", "b", "c", "d"]) buffer.add("delta", text);
    const batch = buffer.take();
    for (const text of ["e", "f", "g"]) buffer.add("delta", text);
    buffer.restore(batch);
    const again = buffer.take();
    assert.deepEqual([texts(again), again.skip], ["cdefg", 2]);
  });
});

describe("readProgress", () => {
  it("reads value, max and node", () => {
    const stepOf = (data: string) => readProgress("progress", data);
    assert.deepEqual(stepOf('{"value":3,"max":20,"node":"7:1","more":[1]}'), { value: 3, max: 20, node: "7:1" });
    assert.deepEqual(stepOf('{"value":0.5,"max":1,"node":7}'), { value: 0.5, max: 1, node: "7" });
    assert.deepEqual(stepOf('{"value":0,"max":0}'), { value: 0, max: 0, node: null });
  });

  it("reads the number of finished nodes as the run's progress", () => {
    const data = '{"node":"4","class_type":"SaveImage","ms":3,"done":2,"nodes":5}';
    assert.deepEqual(readProgress("node_done", data), { value: 2, max: 5, node: null });
    assert.equal(readProgress("node_done", '{"node":"4","value":1,"max":2}'), undefined);
    assert.equal(readProgress("image", data), undefined);
  });

  it("ignores other data", () => {
    const long = JSON.stringify({ value: 1, max: 2, node: "x".repeat(2000) });
    for (const data of ["null", "5", '"text"', "[]", "{}", '{"value":"1","max":2}', '{"value":1}', long]) {
      assert.equal(readProgress("progress", data), undefined, data.slice(0, 50));
    }
  });
});
