import assert from "node:assert/strict";
import { join } from "node:path";
import { createPreviewHost, decodePng, encodePng } from "latentkit";
import { createGraphAgent } from "latentkit/hooks";
import { filesIn, temporaryFolder } from "../../../../helpers/folders.js";
import { quick } from "../../../../helpers/hooks/classic-service.js";
import { FakeClock, turns } from "../../../../helpers/hooks/fake-clock.js";
import { type RunningService, serviceStarter, TOKEN, until } from "../../../../helpers/hooks/hook-service.js";
import { RawClient, rawRequest, requestText } from "../../../../helpers/http/raw-http.js";

const AUTH = `Authorization: Bearer ${TOKEN}`;
const SIDE = 64;
const ROUTES = ["/upload/image", "/upload/mask", "/api/v2/assets"];
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** The body of an upload of a picture, in which `original_ref` names a picture of the same size. */
function formOf(path: string, bytes: Buffer): Buffer {
  const name = path === "/api/v2/assets" ? "file" : "image";
  const reference = JSON.stringify({ filename: "original.png", type: "input" });
  const fields = path === "/upload/mask" ? { original_ref: reference } : {};
  const parts = Object.entries(fields).map(
    ([key, value]) => `--edge\r\nContent-Disposition: form-data; name="${key}"\r\n\r\n${value}\r\n`,
  );
  const head = `--edge\r\nContent-Disposition: form-data; name="${name}"; filename="slow.png"\r\n\r\n`;
  return Buffer.concat([Buffer.from(parts.join("") + head), bytes, Buffer.from("\r\n--edge--\r\n")]);
}

const headOf = (path: string, bytes: number) =>
  requestText(`POST ${path}`, [AUTH, "Content-Type: multipart/form-data; boundary=edge", `Content-Length: ${bytes}`]);

describe("uploads of slow clients", () => {
  const start = serviceStarter();
  const agents: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    for (const agent of agents.splice(0)) await agent.close();
  });
  const folder = temporaryFolder();
  const open = async (limits: object, clock?: FakeClock): Promise<RunningService> => {
    const host = createPreviewHost();
    const agent = createGraphAgent({ graph: quick(), outputDir: join(folder(), "out"), host });
    agents.push(agent);
    const config = { comfy_api: true, comfy_classic: "token" as const, limits };
    return start({ agent, ...(clock && { clock }), config });
  };
  const pixels = Uint8Array.from({ length: SIDE * SIDE * 4 }, (_, at) => (at * 2654435761) >>> 24);
  const picture = () => encodePng({ data: pixels, width: SIDE, height: SIDE, channels: 4 }, { level: 0 });

  it("take many times the longest pause, as long as bytes come", async () => {
    const clock = new FakeClock();
    const { port } = await open({ header_seconds: 1, body_bytes_per_second: 2000 }, clock);
    const idle = clock.timers;
    const body = JSON.stringify({ message: "{}", name: "y".repeat(100) }).padEnd(12_000);
    const client = new RawClient(port);
    client.send(requestText("POST /hooks/agent", [AUTH, "Content-Type: application/json", "Content-Length: 12000"]));
    for (let at = 0; at < body.length; at += 1000) {
      client.send(body.slice(at, at + 1000));
      await until(() => at + 1000 === body.length || clock.timers > idle, "the service waits for the body");
      await sleep(20);
      await clock.advance(450);
    }
    assert.equal((await client.response()).status, 200);
    client.destroy();
  });

  it("arrive whole by any route, also beyond what a whole request once had @long", async () => {
    const service = await open({ header_seconds: 1, body_bytes_per_second: 500 });
    const bytes = await picture();
    const original = formOf("/upload/image", bytes);
    const named = Buffer.from(original.toString("latin1").replace("slow.png", "original.png"), "latin1");
    const first = Buffer.concat([Buffer.from(headOf(ROUTES[0]!, named.length)), named]);
    assert.equal((await rawRequest(service.port, first)).status, 200);
    const dribbled = ROUTES.map(async (path) => {
      const body = formOf(path, bytes);
      const client = new RawClient(service.port).send(headOf(path, body.length));
      for (let piece = 0; piece < 64; piece++) {
        client.send(
          body.subarray(Math.floor((piece * body.length) / 64), Math.floor(((piece + 1) * body.length) / 64)),
        );
        await sleep(250);
      }
      const response = await client.response();
      client.destroy();
      assert.ok(response.status === 200 || response.status === 201, `${path}: ${response.status} ${response.body}`);
      return JSON.parse(response.body) as { name: string; url: string };
    });
    const [image, mask, asset] = await Promise.all(dribbled);
    for (const path of [`/view?type=input&filename=${image!.name}`, asset!.url]) {
      const { pathname, search } = new URL(path, service.url);
      assert.deepEqual(Buffer.from(await (await service.get(pathname + search)).arrayBuffer()), bytes);
    }
    const response = await service.get(`/view?type=input&filename=${encodeURIComponent(mask!.name)}`);
    assert.deepEqual(Uint8Array.from((await decodePng(Buffer.from(await response.arrayBuffer()))).data), pixels);
  });

  for (const path of ROUTES) {
    it(`are cut at ${path} where they bring a byte before each silence is over, and leave nothing`, async () => {
      const clock = new FakeClock();
      const { port } = await open({ header_seconds: 10, body_bytes_per_second: 1000 }, clock);
      const body = formOf(path, await picture());
      const idle = clock.timers;
      const client = new RawClient(port).send(headOf(path, body.length)).send(body.subarray(0, 400));
      await until(() => clock.timers > idle, "the service waits for the body");
      // the answer comes within 30 s of the service's clock or never, however late it is read
      for (let seconds = 0; seconds < 30; seconds += 5) {
        client.send(body.subarray(400 + seconds, 401 + seconds));
        await sleep(20);
        await turns();
        await clock.advance(5000);
      }
      const { status } = await client.response();
      client.destroy();
      assert.equal(status, 408);
      await until(() => filesIn(join(folder(), "out/assets")).length === 0, "the piece is removed");
    });
  }
});
