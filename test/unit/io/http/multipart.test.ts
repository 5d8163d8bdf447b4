import assert from "node:assert/strict";
import { encodeMultipart } from "#src/io/http/multipart.js";

describe("io/http/multipart", () => {
  it("keeps order and bytes", () => {
    const { body, contentType } = encodeMultipart([
      { name: "a", value: "ü\n" },
      { name: "b", filename: "c.png", type: "image/png", bytes: new Uint8Array([0, 13, 10, 255]) },
    ]);
    const boundary = contentType.replace("multipart/form-data; boundary=", "");
    const expected = Buffer.concat([
      Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\nü\n\r\n`),
      Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="b"; filename="c.png"\r\n`),
      Buffer.from("Content-Type: image/png\r\n\r\n"),
      Buffer.from([0, 13, 10, 255]),
      Buffer.from(`\r\n--${boundary}--\r\n`),
    ]);
    assert.deepEqual(Buffer.from(body), expected);
  });

  it("has a boundary nobody can guess", () => {
    assert.notEqual(encodeMultipart([]).contentType, encodeMultipart([]).contentType);
  });
});
