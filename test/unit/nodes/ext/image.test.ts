import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { decodePng, encodePng, invokeNode, LatentkitError, registry, Tensor, validateGraph } from "latentkit";
import { refuses, rejectsAs } from "../../../helpers/errors.js";
import { assertSameBits } from "../../../helpers/tensor/bits.js";
import { golden } from "../../../helpers/tensor/golden.js";

describe("ext remoteImageApi", () => {
  interface Part {
    name: string;
    filename: string | null;
    content_type: string | null;
    value?: string;
    png_pixels?: string;
  }

  interface Case {
    id: string;
    positive: string;
    negative: string;
    model: string;
    aspect_ratio: string;
    seed: number;
    denoise: number;
    optional_image: string | null;
    http_status: number;
    response_image: string | null;
    response_json: object | null;
    out?: string;
    error?: string;
    request?: { method: string; url: string; authorization: string; accept: string; content_type: string };
    parts?: Part[];
  }

  const KEY = "ext remoteImageApi";
  const SECRET = "sk-TESTKEY";

  /** Requests that reached the server. */
  interface Seen {
    method: string;
    path: string;
    headers: IncomingMessage["headers"];
    body: Buffer;
  }

  let server: Server;
  let baseUrl = "";
  let seen: Seen[] = [];
  let respond: (request: Seen, response: ServerResponse, count: number) => void;

  before(async () => {
    server = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const one = {
        method: request.method!,
        path: request.url!,
        headers: request.headers,
        body: Buffer.concat(chunks),
      };
      seen.push(one);
      respond(one, response, seen.length);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  beforeEach(() => {
    seen = [];
  });

  const config = (key = SECRET) => ({ remote_image_api: { base_url: baseUrl, keys: [{ name: "default", key }] } });
  const base = {
    positive: "a cat",
    negative: "ugly",
    model: "sd3",
    aspect_ratio: "1:1",
    seed: 1,
    denoise: 1,
  };
  const ask = (inputs: object = {}, options: object = {}) =>
    invokeNode(KEY, { ...base, ...inputs }, { config: config(), ...options });
  const json = (response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  };
  const picture = async (channels = 3) => {
    const data = new Uint8Array(4 * channels).map((_, i) => i * 9);
    return (await encodePng({ data, width: 2, height: 2, channels })).toString("base64");
  };

  describe("golden", () => {
    const { cases, tensor, raw } = golden<Case>("stability_api");

    for (const one of cases) {
      it(one.id, async () => {
        const encoded = one.response_image === null ? undefined : await pngOf(one.response_image);
        respond = (_, response) => {
          if (one.id === "http_400_no_content_type") {
            response.writeHead(400);
            response.end("plain words");
          } else if (one.id === "http_500_html") {
            response.writeHead(500, { "content-type": "text/html" });
            response.end("<html>oops</html>");
          } else
            json(response, one.http_status, encoded === undefined ? one.response_json : { image: encoded }, {
              "retry-after": "0",
            });
        };
        const { positive, negative, model, aspect_ratio, seed, denoise } = one;
        const optional_image = one.optional_image === null ? null : tensor(one.optional_image);
        const inputs = { positive, negative, model, aspect_ratio, seed, denoise, optional_image };
        if (one.id === "i2i_batch2") {
          await refuses(ask(inputs), "input.invalid", /"optional_image"/, /one image/);
          assert.equal(seen.length, 0);
          return;
        }
        if (one.error !== undefined) await refused(one, ask(inputs));
        else {
          const { result } = await ask(inputs);
          // decision: a grey answer becomes RGB
          assertSameBits(result[0], one.response_image === "resp_gray" ? inColour(tensor(one.out!)) : tensor(one.out!));
        }
        await checkRequest(one, seen[0]!);
      });
    }

    async function refused(one: Case, work: Promise<unknown>): Promise<void> {
      const meaning = /^Exception: Failed to generate image: (.*)$/.exec(one.error!)?.[1];
      const status = one.http_status === 200 ? "the service did not return an image" : `HTTP ${one.http_status}`;
      const error = await refuses(work, "remote.failed", new RegExp(status));
      if (meaning !== undefined) assert.ok(error.message.includes(meaning), error.message);
      if (one.response_json !== null && one.http_status !== 200) assert.match(error.message, /bad_request; e1; e2/);
      assert.ok(!error.message.includes("html"));
      assert.equal(error.details.node, KEY);
    }

    async function checkRequest(one: Case, request: Seen): Promise<void> {
      const expected = one.request!;
      assert.equal(request.method, expected.method);
      assert.equal(request.path, new URL(expected.url).pathname);
      assert.equal(request.headers.accept, expected.accept);
      // decision: a key without a scheme is a bearer token
      assert.equal(request.headers.authorization, `Bearer ${expected.authorization}`);
      assert.ok(request.headers["content-type"]!.startsWith(`${expected.content_type}; boundary=`));
      // decision: no part named "none"
      const parts = one.parts!.filter(({ name }) => name !== "none");
      const sent = partsOf(request);
      assert.deepEqual(
        sent.map(({ name, filename, content_type }) => ({ name, filename, content_type })),
        parts.map(({ name, filename, content_type }) => ({ name, filename, content_type })),
      );
      for (const [i, part] of parts.entries()) {
        if (part.png_pixels === undefined) assert.equal(sent[i]!.bytes.toString("utf8"), part.value);
        else assert.deepEqual([...(await decodePng(sent[i]!.bytes)).data], [...raw(part.png_pixels).data]);
      }
    }

    async function pngOf(name: string): Promise<string> {
      const { data, shape } = raw(name);
      const [height, width, channels = 1] = shape as [number, number, number?];
      return (await encodePng({ data: data as Uint8Array, width, height, channels })).toString("base64");
    }

    function inColour(grey: Tensor): Tensor {
      const [batch, height, width] = grey.shape as [number, number, number];
      return Tensor.from(
        [...grey.data].flatMap((v) => [v, v, v]),
        [batch, height, width, 3],
      );
    }
  });

  /** Reads multipart/form-data byte by byte, without the library under test. */
  function partsOf({ headers, body }: Seen): (Part & { bytes: Buffer })[] {
    const boundary = /boundary=(\S+)$/.exec(headers["content-type"]!)![1]!;
    const parts: (Part & { bytes: Buffer })[] = [];
    let at = body.indexOf(`--${boundary}\r\n`);
    assert.equal(at, 0);
    for (;;) {
      const start = at + boundary.length + 4;
      const end = body.indexOf(`\r\n--${boundary}`, start);
      const split = body.indexOf("\r\n\r\n", start);
      const head = body.toString("utf8", start, split);
      parts.push({
        name: /; name="([^"]*)"/.exec(head)![1]!,
        filename: /; filename="([^"]*)"/.exec(head)?.[1] ?? null,
        content_type: /^Content-Type: (.*)$/m.exec(head)?.[1] ?? null,
        bytes: body.subarray(split + 4, end),
      });
      at = end + 2;
      if (body.toString("latin1", at + boundary.length + 2, at + boundary.length + 4) === "--") break;
    }
    assert.equal(body.toString("latin1", at), `--${boundary}--\r\n`);
    return parts;
  }

  it("sends what a standard parser reads", async () => {
    const encoded = await picture();
    respond = (_, response) => json(response, 200, { image: encoded });
    await ask({ positive: "a\nb\r\n--x", denoise: 1, optional_image: Tensor.zeros([1, 2, 2, 3]) });
    const { body, headers } = seen[0]!;
    const form = await new Response(body, { headers: { "content-type": headers["content-type"]! } }).formData();
    assert.equal(form.get("prompt"), "a\nb\r\n--x");
    assert.equal(form.get("strength"), "1.0");
    const file = form.get("image") as File;
    assert.deepEqual([file.name, file.type], ["output.png", "image/png"]);
  });

  it("takes the key from the environment, and fails without one before a request", async () => {
    const encoded = await picture();
    respond = (_, response) => json(response, 200, { image: encoded });
    await ask({}, { config: config("Basic abc") });
    assert.equal(seen[0]!.headers.authorization, "Basic abc");
    const kept = process.env.STABILITY_API_KEY;
    try {
      delete process.env.STABILITY_API_KEY;
      const noKey = { remote_image_api: { base_url: baseUrl, keys: [] } };
      await refuses(ask({}, { config: noKey }), "remote.no-key");
      assert.equal(seen.length, 1);
      process.env.STABILITY_API_KEY = "sk-env";
      await ask({}, { config: noKey });
      assert.equal(seen[1]!.headers.authorization, "Bearer sk-env");
    } finally {
      if (kept === undefined) delete process.env.STABILITY_API_KEY;
      else process.env.STABILITY_API_KEY = kept;
    }
  });

  it("keeps four channels, and makes three of grey", async () => {
    for (const [channels, expected] of [
      [1, 3],
      [2, 4],
      [3, 3],
      [4, 4],
    ] as const) {
      const encoded = await picture(channels);
      respond = (_, response) => json(response, 200, { image: encoded });
      assert.deepEqual([...((await ask()).result[0] as Tensor).shape], [1, 2, 2, expected]);
    }
  });

  it("tries once more after Retry-After", async () => {
    const encoded = await picture();
    for (const status of [429, 503]) {
      seen = [];
      respond = (_, response, count) =>
        count === 1 ? json(response, status, {}, { "retry-after": "0" }) : json(response, 200, { image: encoded });
      await ask();
      assert.equal(seen.length, 2);
      seen = [];
      respond = (_, response) => json(response, status, { name: "busy" }, { "retry-after": "0" });
      await refuses(ask(), "remote.failed", new RegExp(`${status}.*busy`));
      assert.equal(seen.length, 2);
      seen = [];
      respond = (_, response) => json(response, status, {}, { "retry-after": "3600" });
      await refuses(ask(), "remote.failed");
      assert.equal(seen.length, 1);
    }
    seen = [];
    respond = (_, response) => json(response, 500, {});
    await refuses(ask(), "remote.failed");
    assert.equal(seen.length, 1);
  });

  it("refuses answers that are not a picture", async () => {
    const good = await picture();
    for (const body of [
      "not json",
      "[]",
      "null",
      { image: 5 },
      { image: "" },
      { image: "%%%" },
      { image: Buffer.from("no picture").toString("base64") },
      { image: good.slice(0, 40) },
    ]) {
      respond = (_, response) => json(response, 200, body);
      await refuses(ask(), "remote.failed", /failed to generate image/);
    }
  });

  it("does not follow redirects", async () => {
    for (const status of [301, 302, 307, 308]) {
      seen = [];
      respond = (_, response) => {
        response.writeHead(status, { location: `${baseUrl.replace("127.0.0.1", "localhost")}/steal` });
        response.end();
      };
      await refuses(ask(), "remote.failed", /redirect/);
      assert.equal(seen.length, 1);
    }
  });

  it("stops when the run is interrupted", async () => {
    const controller = new AbortController();
    respond = () => controller.abort();
    await rejectsAs(controller.signal, ask({}, { signal: controller.signal }));
    const waiting = new AbortController();
    respond = (_, response) => {
      json(response, 429, {}, { "retry-after": "30" });
      setTimeout(() => waiting.abort(), 50);
    };
    await rejectsAs(waiting.signal, ask({}, { signal: waiting.signal }));
  });

  it("names a server that is not there, and addresses that are none", async () => {
    const gone = { remote_image_api: { base_url: "http://127.0.0.1:1", keys: [{ name: "a", key: SECRET }] } };
    await refuses(ask({}, { config: gone }), "remote.failed", /connection failed/);
    for (const base_url of ["nonsense", "ftp://127.0.0.1", "http://user:pw@127.0.0.1"]) {
      const bad = { remote_image_api: { base_url, keys: [{ name: "a", key: SECRET }] } };
      await refuses(ask({}, { config: bad }), "config.invalid", /base_url/);
    }
  });

  it("shows the key in no error", async () => {
    const errors: unknown[] = [];
    const collect = async (work: Promise<unknown>) => {
      await work.then(
        () => assert.fail("no error"),
        (error: unknown) => errors.push(error),
      );
    };
    respond = (request, response) =>
      json(response, 403, { name: "forbidden", errors: [request.headers.authorization] });
    await collect(ask());
    respond = (request, response) => {
      response.writeHead(400, { "content-type": "text/plain" });
      response.end(`bad key ${request.headers.authorization}`);
    };
    await collect(ask());
    respond = (_, response) => json(response, 200, { image: SECRET });
    await collect(ask());
    await collect(
      ask(
        {},
        { config: { remote_image_api: { base_url: "http://127.0.0.1:1", keys: config().remote_image_api.keys } } },
      ),
    );
    for (const key of [`${SECRET}\n`, `${SECRET}\u4e00`, `${SECRET}\r\nx: y`, `${SECRET}\0`]) {
      if (key.trim() !== SECRET) await collect(ask({}, { config: config(key) }));
    }
    for (const error of errors) {
      assert.ok(error instanceof LatentkitError);
      for (let at: unknown = error; at instanceof Error; at = at.cause) {
        assert.ok(!`${at.message}${at.stack}${JSON.stringify(at)}`.includes(SECRET), at.message);
      }
    }
  });

  it("takes the fetch it is given", async () => {
    const encoded = await picture();
    const calls: string[] = [];
    const fetch = async (url: string | URL | Request) => {
      calls.push(String(url));
      return Response.json({ image: encoded });
    };
    const keys = config().remote_image_api.keys;
    await ask({}, { fetch, config: { remote_image_api: { keys } } });
    assert.deepEqual(calls, ["https://api.stability.ai/v2beta/stable-image/generate/sd3"]);
  });
});

describe("ext imageToMask", () => {
  interface Case {
    id: string;
    image: string;
    channel: string;
    mask?: string;
  }

  const KEY = "ext imageToMask";
  const CHANNELS = ["red", "green", "blue"];

  describe("golden", () => {
    const { cases, raw, tensor } = golden<Case, { mean3_lut_tensor: string }>("image_to_mask");
    const lut = tensor("mean3_lut").data;

    /** The decision: [B, H, W] for every batch and size, each pixel's number as the reference's table. */
    function expected(image: Tensor, channel: number): Tensor {
      const [batch, height, width, channels] = (image.shape.length === 3 ? [1, ...image.shape] : image.shape) as [
        number,
        number,
        number,
        number,
      ];
      const from = channels < 3 ? 0 : channel;
      const values = Array.from({ length: batch * height * width }, (_, pixel) => {
        const byte = Math.trunc(Math.min(255, Math.max(0, Math.fround(image.data[pixel * channels + from]! * 255))));
        return lut[Number.isNaN(byte) ? 0 : byte]!;
      });
      return Tensor.from(values, [batch, height, width]);
    }

    for (const { id, image: name, channel, mask } of cases) {
      it(id, async () => {
        const { data, shape } = raw(name);
        const image = Tensor.from(Float32Array.from(data), shape);
        if (!CHANNELS.includes(channel)) {
          await refuses(invokeNode(KEY, { image, channel }), "input.not-in-list", /"channel"/, /red, green or blue/);
          return;
        }
        const { result } = await invokeNode(KEY, { image, channel });
        const ours = expected(image, CHANNELS.indexOf(channel));
        assertSameBits(result[0], ours);
        // where the reference reads height, width and channels in their places its mask is the same picture
        const isPlain = shape.length === 4 && shape[0] === 1 && shape[1]! > 1 && shape[2]! > 1;
        if (mask !== undefined && isPlain) assertSameBits((result[0] as Tensor).reshape(raw(mask).shape), tensor(mask));
      });
    }
  });

  it("leaves the image as it is", async () => {
    const image = Tensor.full([1, 2, 2, 3], 0.5);
    await invokeNode(KEY, { image, channel: "red" });
    assertSameBits(image, Tensor.full([1, 2, 2, 3], 0.5));
  });

  it("refuses anything but an image", async () => {
    const channel = "red";
    for (const image of [5, [[1]], Tensor.zeros([4]), Tensor.zeros([1, 2, 2, 5]), Tensor.zeros([1, 2, 2, 0])]) {
      await refuses(invokeNode(KEY, { image, channel }), "input.wrong-type", /ext imageToMask, input "image"/);
    }
    const { result } = await invokeNode(KEY, { image: Tensor.zeros([0, 2, 2, 3]), channel });
    assertSameBits(result[0], Tensor.zeros([0, 2, 2]));
  });
});

describe("ext poseEditor", () => {
  const KEY = "ext poseEditor";

  it("returns nothing", async () => {
    assert.deepEqual(await invokeNode(KEY, { image: "pose.png" }), { result: [] });
    assert.deepEqual(registry.get(KEY)!.outputs, []);
  });

  it("takes numbers and booleans as text, refuses lists and objects", async () => {
    assert.deepEqual(await invokeNode(KEY, { image: 5 }), { result: [] });
    await refuses(invokeNode(KEY, { image: ["a"] }), "input.wrong-type", /"image"/);
    await refuses(invokeNode(KEY, { image: {} }), "input.wrong-type", /"image"/);
    await refuses(invokeNode(KEY, { image: null }), "input.missing", /"image"/);
  });

  it("refuses lists and objects in a graph too, if other nodes' texts take them", () => {
    for (const [image, ok] of [
      ["a.png", true],
      [7, true],
      [{ __value__: ["a"] }, false],
      [{ a: 1 }, false],
    ] as const) {
      const verdict = validateGraph({ 1: { class_type: KEY, inputs: { image } } }, { targets: ["1"] });
      assert.equal(verdict.ok, ok, JSON.stringify(image));
      if (!ok) assert.equal(verdict.nodeErrors["1"]!.errors[0]!.type, "invalid_input_type");
    }
  });
});
