import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { decodePng, type RenderOptions, render } from "latentkit";
import { parseJson } from "#src/io/json/lossless.js";
import { filesIn, root, temporaryFolder } from "./helpers/folders.js";

const graphs = join(root, "test/graphs");
const picture = (name: string) => readFileSync(join(graphs, "input", name));

describe("test/graphs", () => {
  const folder = temporaryFolder();
  const run = async (name: string, options: RenderOptions = {}) => {
    const before = filesIn(folder());
    const result = await render(join(graphs, `${name}.json`), { outputDir: folder(), ...options });
    assert.equal(result.status, "success", result.error?.message);
    const written = filesIn(folder()).filter((file) => !before.includes(file));
    assert.deepEqual(
      result.files.map(({ path }) => path),
      written.map((file) => join(folder(), file)),
    );
    return result;
  };
  const read = async (file: string) => decodePng(readFileSync(join(folder(), file)));

  it("has one graph for each of the eleven nodes", () => {
    const used = readdirSync(graphs)
      .filter((file) => file.endsWith(".json"))
      .map((file) => {
        const graph = parseJson(readFileSync(join(graphs, file), "utf8")) as Record<string, { class_type: string }>;
        const key = `ext ${file.replace(".json", "").replace(/-(.)/g, (_, letter: string) => letter.toUpperCase())}`;
        assert.ok(
          Object.values(graph).some(({ class_type }) => class_type === key),
          `${file} has no ${key}`,
        );
        return key;
      });
    assert.equal(used.length, 11);
  });

  it("if: takes the branch, names the file after its size, and never reads the other picture", async () => {
    const { nodeMs } = await run("if", { set: { choose: "yes" } });
    assert.deepEqual(Object.keys(nodeMs).sort(), ["1", "3", "4"]);
    assert.deepEqual((await read("if/64x64_00001.png")).data, (await decodePng(picture("lake.png"))).data);
    await run("if", { set: { choose: "" } });
    assert.deepEqual((await read("if/32x64_00001.png")).data, (await decodePng(picture("night.png"))).data);
  });

  it("pose-editor: runs as a target and returns nothing", async () => {
    const { outputs } = await run("pose-editor", { targets: ["1", "3"] });
    assert.deepEqual(outputs["1"], []);
    assert.deepEqual(Object.keys((await read("pose-editor/lake_00001.png")).text), []);
  });

  it("image-to-mask: noise stays in the shadow", async () => {
    await run("image-to-mask", { set: { scene: "lake" } });
    const { width, height } = await read("image-to-mask/noise-in-the-shadow_00001.png");
    assert.deepEqual([width, height], [64, 64]);
  });

  it("show-spent-time: shows the pipe's text, which is empty here", async () => {
    const { ui } = await run("show-spent-time");
    assert.deepEqual(ui, { "2": { text: [""] } });
  });

  it("latent-noisy: the largest seed reaches the noise and the metadata with every digit", async () => {
    await run("latent-noisy");
    const { text, data } = await read("latent-noisy/gpu-stream_00001.png");
    assert.match(text.prompt!, /"seed": "18446744073709551615",/);
    await run("latent-noisy", { set: { "2.seed": "18446744073709551614" } });
    assert.match((await read("latent-noisy/gpu-stream_00002.png")).text.prompt!, /"seed": 18446744073709551614,/);
    assert.notDeepEqual((await read("latent-noisy/gpu-stream_00002.png")).data, data);
  });

  it("latent-composite-masked-with-cond: one conditioning for each text, one picture", async () => {
    const options = { set: { scene: "lake" }, targets: ["9", "11"] };
    const { outputs } = await run("latent-composite-masked-with-cond", options);
    assert.equal((outputs["9"]![2] as unknown[]).length, 3);
    assert.deepEqual(filesIn(folder()), ["latent-composite/night-and-day_00001.png"]);
  });

  it("inject-noise-to-latent: the picture shows through the noise", async () => {
    await run("inject-noise-to-latent");
    const [noisy, plain] = [await read("inject-noise/lake_00001.png"), await decodePng(picture("lake.png"))];
    const distance =
      Uint8Array.from(plain.data).reduce((sum, value, i) => sum + Math.abs(value - noisy.data[i]!), 0) /
      plain.data.length;
    assert.ok(distance > 4 && distance < 64, `mean distance ${distance}`);
  });

  it("remote-image-api: sends the form to the configured service and saves the response", async () => {
    const bodies: string[] = [];
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        bodies.push(
          `${request.method} ${request.url} ${request.headers.authorization}\n${Buffer.concat(chunks).toString("latin1")}`,
        );
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify({ image: picture("night.png").toString("base64") }));
      });
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const base_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const config = { remote_image_api: { base_url, keys: [{ name: "default", key: "a-secret" }] } };
    try {
      await run("remote-image-api", { set: { scene: "lake" }, config });
    } finally {
      server.close();
    }
    assert.equal(bodies.length, 1);
    assert.match(bodies[0]!, /^POST \/v2beta\/stable-image\/generate\/sd3 Bearer a-secret\n/);
    assert.match(bodies[0]!, /name="prompt"\r\n\r\na lake at dawn\r\n/);
    assert.match(bodies[0]!, /name="strength"\r\n\r\n0\.6\r\n/);
    const { data, text } = await read("remote-image-api/answer_00001.png");
    assert.deepEqual(data, (await decodePng(picture("night.png"))).data);
    assert.ok(!JSON.stringify(text).includes("a-secret"));
  });

  it("save-image-lazy: fills the prefix's variables and keeps every pixel", async () => {
    await run("save-image-lazy");
    assert.deepEqual(
      (await read("save-image-lazy/64x64_0_00001.png")).data,
      (await decodePng(picture("lake.png"))).data,
    );
  });

  it("save-text-lazy: one row a line, and the image beside it", async () => {
    await run("save-text-lazy", { set: { scene: "lake" } });
    assert.deepEqual(filesIn(folder()), ["save-text-lazy/notes.csv", "save-text-lazy/notes.png"]);
    assert.equal(
      readFileSync(join(folder(), "save-text-lazy/notes.csv"), "utf8"),
      '"one, lake"\r\n"two ""three"""\r\n',
    );
  });

  it("show-anything-lazy: shows the noise's sigma and hands the text on", async () => {
    const { ui } = await run("show-anything-lazy");
    const text = ui["3"]!.text![0] as string;
    assert.match(text, /^\d+\.\d+$/);
    assert.equal(readFileSync(join(folder(), "show-anything-lazy/sigma.txt"), "utf8"), text);
  });
});

describe("examples/noise.json", () => {
  it("is another picture with another seed", async () => {
    const pictureOf = async (seed: number) => {
      const { files } = await render(join(root, "examples/noise.json"), { set: { "3.seed": seed }, output: "memory" });
      return (await decodePng(files[0]!.bytes!)).data;
    };
    const [first, second] = [await pictureOf(1), await pictureOf(2)];
    assert.notDeepEqual(first, second);
    assert.ok(new Set(first).size > 100);
  });
});
