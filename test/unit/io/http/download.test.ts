import assert from "node:assert/strict";
import type { RequestListener } from "node:http";
import { type DownloadOptions, download, parseAddress } from "#src/io/http/download.js";
import { refuses, rejectsAs } from "../../../helpers/errors.js";
import { CERTIFICATE, httpsServer } from "../../../helpers/http/https-server.js";

describe("download", () => {
  let server: Awaited<ReturnType<typeof httpsServer>> | undefined;
  let requests: string[] = [];
  const serve = async (listener: RequestListener) => {
    requests = [];
    server = await httpsServer((request, response) => {
      requests.push(request.url!);
      listener(request, response);
    });
    return server.address;
  };
  const get = (address: string, options: DownloadOptions = {}) =>
    download(address, { subject: 'input "image"', isAllowed: () => true, request: { ca: CERTIFICATE }, ...options });
  afterEach(async () => {
    await server?.close();
    server = undefined;
  });

  it("returns the content, follows five redirects, and sends nothing of its caller", async () => {
    let headers: string[] = [];
    const address = await serve((request, response) => {
      const hop = Number(request.url!.slice(1));
      headers = Object.keys(request.headers).sort();
      if (hop > 0) response.writeHead(302, { location: hop % 2 ? `/${hop - 1}` : `${address}/${hop - 1}` }).end();
      else response.end(Buffer.from([1, 2, 3]));
    });
    assert.deepEqual([...(await get(`${address}/5`))], [1, 2, 3]);
    assert.deepEqual(requests, ["/5", "/4", "/3", "/2", "/1", "/0"]);
    assert.deepEqual(headers, ["accept", "accept-encoding", "connection", "host", "user-agent"]);
    await refuses(
      get(`${address}/6`),
      "download.failed",
      /^input "image": could not download .*: more than 5 redirects\.$/,
    );
  });

  it("refuses a name that resolves to a closed address, before it connects", async () => {
    const address = await serve((_, response) => response.end("secret"));
    const seen: string[] = [];
    const isAllowed = (ip: string) => {
      seen.push(ip);
      return false;
    };
    await refuses(
      get(`${address}/a.png?key=hidden`, { isAllowed }),
      "download.refused",
      /^input "image": expected a public address, received "https:\/\/localhost:\d+\/a\.png"\.$/,
    );
    assert.ok(seen.length > 0 && seen.every((ip) => ["127.0.0.1", "::1"].includes(ip)), seen.join());
    await refuses(get(address, { isAllowed: undefined }), "download.refused", /a public address/);
    assert.deepEqual(requests, []);
  });

  it("refuses closed addresses in every way of writing them", async () => {
    for (const host of [
      "127.0.0.1",
      "0x7f.1",
      "2130706433",
      "[::1]",
      "[::ffff:127.0.0.1]",
      "169.254.169.254",
      "10.1",
    ]) {
      await refuses(download(`https://${host}/`), "download.refused", /expected a public address/);
    }
  });

  it("checks each redirect", async () => {
    const to = (location: string) => serve((_, response) => response.writeHead(301, { location }).end());
    await refuses(get(await to("http://localhost/a")), "download.refused", /expected an https: URL/);
    await server!.close();
    await refuses(get(await to("file:///etc/passwd")), "download.refused", /expected an https: URL/);
    await server!.close();
    const isAllowed = (ip: string) => ["127.0.0.1", "::1"].includes(ip);
    await refuses(get(await to("https://169.254.169.254/"), { isAllowed }), "download.refused", /a public address/);
    await server!.close();
    await refuses(get(await to("https://[")), "download.failed", /the redirect has no address/);
  });

  it("ends at its limit of bytes, announced or not", async () => {
    const address = await serve((request, response) => {
      if (request.url === "/announced") response.setHeader("content-length", 100);
      response.write(Buffer.alloc(60));
      response.write(Buffer.alloc(40));
      // never ends
    });
    for (const path of ["/announced", "/"]) {
      await refuses(get(address + path, { maxBytes: 99 }), "download.refused", /a file of at most 99 bytes/);
    }
  });

  it("ends at its limit of time, and with the signal", async () => {
    const address = await serve((_, response) => void response.write("a"));
    await refuses(get(address, { timeoutMs: 100 }), "download.failed", /timed out after 0\.1 s/);
    const signal = AbortSignal.timeout(50);
    await rejectsAs(signal, get(address, { signal }));
    await rejectsAs(signal, get(address, { signal }));
  });

  it("names what is wrong with a response", async () => {
    const address = await serve((request, response) => {
      if (request.url === "/gzip") response.setHeader("content-encoding", "gzip");
      else if (request.url === "/cut") {
        response.setHeader("content-length", 10);
        response.write("abc", () => response.destroy());
        return;
      } else response.statusCode = 404;
      response.end("x");
    });
    await refuses(get(`${address}/none`), "download.failed", /could not download "https:.*": status 404\.$/);
    await refuses(get(`${address}/gzip`), "download.failed", /compressed content \("gzip"\)/);
    await refuses(get(`${address}/cut`), "download.failed", /could not download .*: ECONNRESET\.$/);
    await refuses(get(address, { request: {} }), "download.failed", /: DEPTH_ZERO_SELF_SIGNED_CERT\.$/);
    await server!.close();
    await refuses(get(address), "download.failed", /: ECONNREFUSED\.$/);
  });

  it("takes https: addresses without a password alone", async () => {
    assert.equal(parseAddress("https://a.example/b.png", "x").hostname, "a.example");
    for (const address of [
      "http://a.example/",
      "https://u:p@a.example/",
      "https://",
      `https://a/${"b".repeat(9000)}`,
    ]) {
      await refuses(
        () => parseAddress(address, "x"),
        "download.refused",
        /^x: expected an https: URL without user name or pass/,
      );
    }
  });
});
