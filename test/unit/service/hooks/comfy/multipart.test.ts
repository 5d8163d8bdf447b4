import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { systemClock } from "#src/service/hooks/clock.js";
import { readParts } from "#src/service/hooks/comfy/multipart.js";

const TYPE = "multipart/form-data; boundary=edge";
const part = (name: string, value: string) =>
  `--edge\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
const END = "--edge--\r\n";

/** Sends a body in pieces and returns the parts that were read, or the error. */
async function partsOf(
  pieces: readonly string[],
  { type = TYPE, silenceMs = 2000, isCut = false, maxBytes = 1_000_000, busyMs = 0 } = {},
) {
  const read: [string, string][] = [];
  const outcome = new Promise<unknown>((resolve) => {
    server.once("request", async (req, res) => {
      const sink = {
        begin: (name: string, fileName?: string) =>
          void read.push([fileName === undefined ? name : `${name} of ${fileName}`, ""]),
        data: (bytes: Buffer) => {
          read.at(-1)![1] += bytes.toString("latin1");
        },
        end: () => {},
      };
      const limits = { maxBytes, silenceMs, bytesPerSecond: 1, clock: systemClock };
      const error = await readParts(req, res, sink, limits).catch((error: unknown) => error);
      res.end();
      resolve(error);
    });
  });
  const { port } = server.address() as AddressInfo;
  const sent = request({ port, method: "POST", headers: { "content-type": type } });
  sent.on("error", () => {});
  for (const piece of pieces) {
    const written = new Promise((resolve) => sent.write(piece, "latin1", resolve));
    // the piece has left, and nobody can read it
    for (const end = performance.now() + busyMs; performance.now() < end; );
    await written;
    if (busyMs > 0) await new Promise((resolve) => setTimeout(resolve, 20));
  }
  if (isCut) sent.destroy();
  else if (silenceMs >= 1000 || busyMs > 0) sent.end();
  const error = await outcome;
  sent.destroy();
  return { read, error: error as { kind?: string; name?: string; message: string } | undefined };
}

const server = createServer();

describe("readParts", () => {
  before(async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  it("tells the names of files, as their clients wrote them", async () => {
    const disposition = 'form-data; filename="a (1).png"; name="image"';
    const { read } = await partsOf([`--edge\r\nContent-Disposition: ${disposition}\r\n\r\nx\r\n`, part("b", "y"), END]);
    assert.deepEqual(read, [
      ["image of a (1).png", "x"],
      ["b", "y"],
    ]);
  });

  it("reads names without quotes and in UTF-8, as .NET and older Python send them", async () => {
    const disposed = [
      ["name=image; filename=a.png; filename*=utf-8''a.png", "image of a.png"],
      ["name=image; filename=\"=?utf-8?B?w7wucG5n?=\"; filename*=utf-8''%C3%BC.png", "image of ü.png"],
      ["name=\"image\"; filename*=utf-8'en'%C3%BC.png", "image of ü.png"],
      ['name="image"; filename="a.png"; filename*=utf-8\'\'%ff', "image of a.png"],
      ['name="image"; filename="a.png"; filename*=utf-16\'\'b.png', "image of a.png"],
      ['filename="a; name=mask.png"; name=image', "image of a; name=mask.png"],
      ["name=overwrite", "overwrite"],
    ];
    for (const [parameters, name] of disposed) {
      const body = `--edge\r\nContent-Disposition: form-data; ${parameters}\r\n\r\nx\r\n${END}`;
      assert.deepEqual((await partsOf([body])).read, [[name, "x"]], parameters);
    }
  });

  it("reads parts, wherever the body is split", async () => {
    const hostile = "a\r\n--edg\r\n--edgf\r\r\n-";
    const body = part("a", hostile) + part("empty", "") + part("file", "x\0y") + END;
    const expected = [
      ["a", hostile],
      ["empty", ""],
      ["file", "x\0y"],
    ];
    for (let at = 1; at < body.length; at++) {
      const { read, error } = await partsOf([body.slice(0, at), body.slice(at)]);
      assert.equal(error, undefined, `split at ${at}: ${error?.message}`);
      assert.deepEqual(read, expected, `split at ${at}`);
    }
    assert.deepEqual((await partsOf([...body])).read, expected);
  });

  it("what comes after the end, and before the first part, is no part", async () => {
    const { read, error } = await partsOf([`preamble\r\n${part("a", "1")}${END}epilogue --edge\r\n`]);
    assert.deepEqual([read, error], [[["a", "1"]], undefined]);
  });

  it("refuses another type, a cut form, a part without a name, endless headers and too many parts", async () => {
    assert.equal((await partsOf(["x"], { type: "application/json" })).error?.kind, "unsupported_media_type");
    assert.equal((await partsOf(["x"], { type: "multipart/form-data" })).error?.kind, "unsupported_media_type");
    for (const body of [
      part("a", "1"),
      "",
      "--edge\r\n\r\nx\r\n--edge--",
      `--edge\r\nX: ${"y".repeat(9000)}`,
      `--edgeX${END}`,
      part("a", "").repeat(65) + END,
    ]) {
      assert.equal((await partsOf([body])).error?.kind, "invalid_request", body.slice(0, 40));
    }
  });

  it("refuses what goes on before the first part or after the last one, beyond any form of such a file", async () => {
    const much = "x".repeat(80_000);
    for (const body of [much, part("a", "1") + END + much]) {
      assert.equal((await partsOf([body], { maxBytes: 10_000 })).error?.kind, "payload_too_large");
      assert.notEqual((await partsOf([body])).error?.kind, "payload_too_large");
    }
  });

  it("bytes that came while the service was busy are in time", async () => {
    const body = part("a", "1") + END;
    const pieces = Array.from({ length: 4 }, (_, at) => body.slice(at * 20, at === 3 ? undefined : (at + 1) * 20));
    assert.deepEqual(await partsOf(pieces, { silenceMs: 100, busyMs: 250 }), { read: [["a", "1"]], error: undefined });
  });

  it("silence ends the wait, and so does a client that leaves", async () => {
    assert.equal((await partsOf([part("a", "1")], { silenceMs: 30 })).error?.kind, "request_timeout");
    assert.equal((await partsOf([part("a", "1")], { isCut: true })).error?.name, "ClientGone");
  });
});
