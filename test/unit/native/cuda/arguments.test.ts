import assert from "node:assert/strict";
import { fakeGpu, onFakeGpu } from "../../../helpers/process/fake-gpu.js";

/** An open device, memory of 4 floats, and of 4 on another device. */
const OPENED = `
  const { cuda } = loadNative();
  const open = (ordinal) => cuda.open(process.env.LATENTKIT_CUDA, process.env.LATENTKIT_CUDA_DRIVER, ordinal);
  const device = open(0);
  const room = (bytes, of = device) => cuda.take(of, bytes);
  const [x, y] = [room(16), room(16)];
  cuda.upload(x, Float32Array.of(1, 2, 3, 4));
  const read = (memory, count = 4) => { const out = new Float32Array(count); cuda.download(out, memory); return [...out]; };
  const thrown = (work) => { try { return String(work()); } catch (error) { return [error.name, error.message, error.status]; } };
`;

describe("arguments of the CUDA backend", () => {
  it("names a value that is not device memory, was released, or belongs to another device", async () => {
    const program = `${OPENED}
      const other = room(16, open(1));
      const released = room(16);
      cuda.release(released);
      cuda.release(released);
      for (const wrong of [undefined, null, 5, {}, device, new Float32Array(4), Object.create(x), new Proxy(x, {})]) {
        send(thrown(() => cuda.scale(y, wrong, 1)));
      }
      for (const wrong of [undefined, {}, x]) send(thrown(() => cuda.take(wrong, 4)));
      send(thrown(() => cuda.scale(y, released, 1)));
      send(thrown(() => cuda.scale(y, other, 1)));
      send(counted("misuses"));
    `;
    const values = (await onFakeGpu(program, fakeGpu("devices=2"))) as [string, string][];
    for (const [name, message] of values.slice(0, 8)) {
      assert.equal(name, "TypeError");
      assert.match(message, /^scale: argument "x": expected memory of a CUDA device, received .+\.$/);
    }
    for (const [, message] of values.slice(8, 11)) assert.match(message, /"device": expected an opened CUDA device/);
    assert.match(values[11]![1], /"x": expected device memory, received memory that was released\.$/);
    assert.match(values[12]![1], /"x": expected memory of the same device, received memory of another\.$/);
    assert.deepEqual(values[13], [0]);
  });

  it("checks lengths, offsets and overlaps as for arrays", async () => {
    const program = `${OPENED}
      send(thrown(() => cuda.scale(y, room(12), 1)));
      send(thrown(() => cuda.upload(x, new Float32Array(3))));
      send(thrown(() => cuda.download(new Float32Array(5), x)));
      send(thrown(() => cuda.upload(x, new Float64Array(2))));
      send(thrown(() => cuda.copy(x, y, 4)));
      send(thrown(() => cuda.copy(x, y, -1)));
      send(thrown(() => cuda.copy(x, y, 0, 2 ** 40)));
      send(thrown(() => cuda.copy(x, y, 0, 4, 2 ** 53 - 1)));
      send(thrown(() => cuda.copy(room(4), y, 0, 4, 8)));
      send(thrown(() => cuda.resizeBilinear(x, x, 1, 2, 2, 2, 2)));
      send(thrown(() => cuda.resizedBlend(y, x, x, x, [1, 1, 2, 2], [1, 2, 3])));
      send(thrown(() => cuda.take(device, 2 ** 53)));
      send(thrown(() => cuda.filterPng(x, 1, 2, 2, 1)));
      send(counted("misuses"));
    `;
    const values = (await onFakeGpu(program)) as [string, string][];
    const expected = [
      /"x": expected 3 elements|"x": expected 4 elements, received 3/,
      /"values": expected 16 elements, received 12/,
      /"out": expected 16 elements, received 20/,
      /"values": expected a Float32Array or Uint8Array/,
      /"at": expected an offset/,
      /"at": expected a whole number/,
      /"start": expected an offset within the memory/,
      /"bytes": expected as many as the memory has/,
      /"at": expected an offset that leaves room/,
      /"x": expected memory separate from the output/,
      /"mask": expected 6 elements, received 4/,
      /"bytes": expected a whole number/,
      /"index": expected a picture of the batch, received 1/,
    ];
    for (const [index, pattern] of expected.entries()) assert.match(values[index]![1], pattern);
    assert.deepEqual(values.at(-1), [0]);
  });

  it("copies to a place, fills, and tells of its memory", async () => {
    const program = `${OPENED}
      const wide = room(32);
      cuda.fill(wide, 9);
      cuda.copy(wide, x, 12);
      send(read(wide, 8));
      cuda.copy(wide, x, 4, 8, 4);
      cuda.copy(wide, x, 24, 8);
      send(read(wide, 8));
      const before = cuda.memory(device).lent;
      cuda.release(wide);
      cuda.wait(device);
      send([before > cuda.memory(device).lent, cuda.memory(device).pooled > 0]);
      cuda.trim(device);
      send([cuda.memory(device).pooled, cuda.architectures(device)]);
      const empty = room(0);
      cuda.upload(empty, new Float32Array(0));
      cuda.scale(empty, empty, 2);
      send(read(empty, 0));
    `;
    assert.deepEqual(await onFakeGpu(program), [
      [9, 9, 9, 1, 2, 3, 4, 9],
      [9, 3, 9, 1, 2, 3, 3, 4],
      [true, true],
      [0, "75,80,86,89,90,100,120"],
      [],
    ]);
  });

  it("tells failures of memory and of the device apart", async () => {
    const program = `${OPENED}
      send(thrown(() => cuda.take(device, 2 ** 40)));
      cuda.scale(y, x, 2);
      send(thrown(() => cuda.download(new Float32Array(4), y)));
      send(thrown(() => cuda.take(device, 16)));
    `;
    const values = (await onFakeGpu(program, fakeGpu("fail=lk_scale:719:1"))) as [string, string, string][];
    assert.deepEqual(
      values.map(([name, , status]) => [name, status]),
      [
        ["Error", "no-memory"],
        ["Error", "device-lost"],
        ["Error", "device-lost"],
      ],
    );
  });

  it("is safe from getters that release memory in the middle of a call", async () => {
    const program = `${OPENED}
      const options = { strength: 1, average: false, normalize: false, get mix() { cuda.release(y); return 0; } };
      send(thrown(() => cuda.injectNoise(y, x, x, options)));
      const drawn = { get seed() { cuda.release(x); return 1n; }, offset: 0n, threads: 256, k: 1 };
      send(thrown(() => cuda.injectNoise(room(16), x, x, { ...options, mix: 0.5, drawn })));
      send(counted("misuses"));
    `;
    const [[, message], [, drawing], misuses] = (await onFakeGpu(program)) as [
      [string, string],
      [string, string],
      number[],
    ];
    assert.match(message, /"out": expected device memory, received memory that was released/);
    assert.match(drawing, /"base": expected device memory, received memory that was released/);
    assert.deepEqual(misuses, [0]);
  });

  it("checks what noise is drawn from, as philoxRandn does", async () => {
    const program = `${OPENED}
      const good = { seed: 1n, offset: 4n, threads: 256, k: 1 };
      const inject = (drawn) => cuda.injectNoise(y, x, x, { strength: 1, average: false, normalize: false, mix: 1, drawn });
      const wrong = [5, { seed: 1 }, { seed: -1n }, { offset: 3n }, { threads: 1.5 }, { threads: 255 }, { k: "1" }];
      for (const part of wrong) send(thrown(() => inject(typeof part === "object" ? { ...good, ...part } : part)));
      send(thrown(() => inject(undefined)));
      inject(good);
      const random = room(16);
      cuda.philoxRandn(random, 1n, 4n, 256, 1);
      // mixed in whole, nothing of the rest is left
      send([String(read(y)) === String(read(random)), ...counted("misuses")]);
    `;
    const values = (await onFakeGpu(program)) as [string, string, string][];
    const expected = [
      /"options\.drawn": expected an object, received 5/,
      /"options\.drawn\.seed": expected a bigint, received 1/,
      /"options\.drawn\.seed": expected a bigint from 0/,
      /^injectNoise: /,
      /"options\.drawn\.threads": expected a whole number/,
      /^injectNoise: /,
      /"options\.drawn\.k": expected a number/,
      /^injectNoise: /,
    ];
    for (const [index, pattern] of expected.entries()) assert.match(values[index]![1], pattern);
    assert.deepEqual(
      [3, 5, 7].map((index) => values[index]![2]),
      ["bad-argument", "bad-argument", "bad-length"],
    );
    assert.deepEqual(values.at(-1), [true, 0]);
  });
});
