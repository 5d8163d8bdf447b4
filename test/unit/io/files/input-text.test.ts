import assert from "node:assert/strict";
import { dataBytes, givenBytes, isAddress, isDataText } from "#src/io/files/input-text.js";
import { refuses } from "../../../helpers/errors.js";

describe("input-text", () => {
  it("tells addresses and data: URLs from names", () => {
    for (const name of ["https://a.example/b.png", "HTTPS://a", "http://a"]) assert.ok(isAddress(name), name);
    for (const name of ["https", "a/https://b", "ftp://a", "", 5, undefined]) assert.ok(!isAddress(name), String(name));
    assert.deepEqual(["data:image/png;base64,", "DATA:x", "data.png"].map(isDataText), [true, true, false]);
  });

  it("reads base64 of any type, with and without padding", () => {
    for (const length of [0, 1, 2, 3, 4, 100]) {
      const bytes = Buffer.from(Array.from({ length }, (_, i) => i * 37));
      const text = bytes.toString("base64");
      assert.deepEqual(dataBytes(`data:image/png;base64,${text}`, "x"), bytes);
      assert.deepEqual(dataBytes(`DATA:;charset=utf-8;BASE64,${text.replaceAll("=", "")}`, "x"), bytes);
      assert.deepEqual(dataBytes(`data:;base64,${bytes.toString("base64url")}`, "x"), bytes);
    }
  });

  it("refuses anything but base64", async () => {
    for (const text of [
      "data:",
      "data:image/png,abc",
      "data:;base64",
      "data:;base64,a b=",
      "data:;base64,YW=J",
      "data:;base64,é",
    ]) {
      await refuses(
        () => dataBytes(text, 'input "image"'),
        "value.invalid",
        /^input "image": expected a base64 data: URL/,
      );
    }
    await refuses(() => dataBytes(`data:${"x".repeat(1000)};base64,`, "x"), "value.invalid");
  });

  it("finds bytes by their own names alone, in the same memory", () => {
    const memory = new Uint8Array([0, 1, 2, 3]);
    const files = { "a.png": memory.subarray(1), "b.png [input]": memory };
    const found = givenBytes(files, "a.png [input]")!;
    assert.deepEqual([[...found], found.buffer], [[1, 2, 3], memory.buffer]);
    assert.equal(givenBytes(files, "b.png [input]")!.length, 4);
    for (const name of ["b.png", "toString", "__proto__"]) assert.equal(givenBytes(files, name), undefined);
    const shared = new Uint8Array(new SharedArrayBuffer(2)).fill(7);
    const copy = givenBytes({ s: shared }, "s")!;
    assert.deepEqual([[...copy], copy.buffer instanceof ArrayBuffer], [[7, 7], true]);
    assert.equal(givenBytes(undefined, "a.png"), undefined);
  });
});
