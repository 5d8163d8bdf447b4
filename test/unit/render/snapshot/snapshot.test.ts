import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { decodePng } from "latentkit";
import { renderOutputs } from "#src/render/snapshot/outputs.js";
import { checkSnapshot, removeSnapshot, type SnapshotOptions } from "#src/render/snapshot/snapshot.js";
import { refuses } from "../../../helpers/errors.js";
import { filesIn, temporaryFolder } from "../../../helpers/folders.js";

/** Two pictures of one colour each, and a text. */
const graph = (value: number, shown: unknown = "a text", width = 8) => ({
  "1": { class_type: "SolidMask", inputs: { value, width, height: 8 } },
  "2": { class_type: "MaskToImage", inputs: { mask: ["1", 0] } },
  "10": { class_type: "SaveImage", inputs: { images: ["2", 0], filename_prefix: ["4", 0] } },
  "9": { class_type: "PreviewImage", inputs: { images: ["2", 0] } },
  "4": { class_type: "ext showAnythingLazy", inputs: { anything: shown } },
});

describe("checkSnapshot", () => {
  const folder = temporaryFolder();
  const stem = () => join(folder(), "__snapshots__", "one");
  const check = async (made: object, options: SnapshotOptions) =>
    checkSnapshot(stem(), (await renderOutputs(made, {})).outputs, options);
  const missing = { write: "missing" } as const;
  const none = { write: "none" } as const;

  it("writes what is missing, unless nothing may be written, and compares what is there", async () => {
    assert.equal((await check(graph(0.5), none)).status, "missing");
    assert.deepEqual(filesIn(folder()), []);
    assert.equal((await check(graph(0.5), missing)).status, "written");
    assert.deepEqual(filesIn(folder()).sort(), [
      "__snapshots__/one-1.png",
      "__snapshots__/one-2.png",
      "__snapshots__/one.json",
    ]);
    const { outputs } = JSON.parse(readFileSync(`${stem()}.json`, "utf8")) as { outputs: object[] };
    const pixels = (outputs[1] as { pixels: string }).pixels;
    assert.match(pixels, /^blake3:[0-9a-f]{64}$/);
    assert.deepEqual(outputs, [
      { kind: "text", node: "4", text: ["a text"] },
      { kind: "picture", node: "9", width: 8, height: 8, pixels },
      { kind: "picture", node: "10", width: 8, height: 8, pixels },
    ]);
    assert.deepEqual(await check(graph(0.5), none), { status: "equal", differences: [], pictures: [] });
  });

  it("draws each picture that differs, and removes it when it is equal again", async () => {
    await check(graph(0.5), missing);
    const verdict = await check(graph(0.502), none);
    assert.equal(verdict.status, "different");
    const words = "64 of 64 pixels differ, by up to 1 of 255";
    assert.deepEqual(verdict.differences, [`picture 1 of node 9: ${words}`, `picture 2 of node 10: ${words}`]);
    const drawn = [1, 2].map((number) => join(folder(), "__differences__", `one-${number}.png`));
    assert.deepEqual(verdict.pictures, drawn);
    const { width, height } = await decodePng(readFileSync(drawn[0]!));
    assert.ok(width > 600 && height > 250);
    assert.equal((await check(graph(0.502), { ...none, tolerance: 1 })).status, "equal");
    assert.equal(existsSync(drawn[0]!), false);
    assert.equal((await check(graph(0.51), { ...none, tolerance: 1 })).status, "different");
    assert.equal((await check(graph(0.5), none)).status, "equal");
    assert.equal(existsSync(drawn[1]!), false);
  });

  it("names other sizes, texts, outputs and missing pictures", async () => {
    await check(graph(0.5), missing);
    const clauses = async (made: object) => (await check(made, none)).differences;
    assert.deepEqual((await clauses(graph(0.5, "a text", 16)))[0], "picture 1 of node 9: 16 x 8 instead of 8 x 8");
    assert.deepEqual(await clauses(graph(0.5, "another")), ['a text of node 4: expected "a text", received "another"']);
    const pictures = {
      ...graph(0.5),
      "10": { class_type: "SaveImage", inputs: { images: ["2", 0], filename_prefix: "a" } },
    };
    assert.deepEqual(await clauses(pictures), ["output 1: expected a text of node 4, received a picture of node 9"]);
    rmSync(`${stem()}-1.png`);
    assert.match((await clauses(graph(0.6)))[0]!, /other pixels, and .*one-1\.png is missing/);
  });

  it("an update replaces what differs, restores what is missing, and removes what is left over", async () => {
    await check(graph(0.5), missing);
    const all = { write: "all" } as const;
    assert.equal((await check(graph(0.5), all)).status, "equal");
    rmSync(`${stem()}-2.png`);
    assert.equal((await check(graph(0.5), all)).status, "updated");
    assert.ok(existsSync(`${stem()}-2.png`));
    const { "10": _, ...one } = graph(0.7);
    assert.equal((await check(one, all)).status, "updated");
    assert.equal(existsSync(`${stem()}-2.png`), false);
    assert.equal((await check(one, none)).status, "equal");
    writeFileSync(`${stem()}.json`, "{");
    await refuses(check(one, none), "value.invalid", /one\.json: not a snapshot; write it again with --update/);
    assert.equal((await check(one, all)).status, "updated");
    await removeSnapshot(stem());
    assert.deepEqual(filesIn(folder()), []);
  });

  it("compares latents by their bytes, at a clock that stands still", async () => {
    const latent = (width: number) => ({
      "1": { class_type: "EmptyLatentImage", inputs: { width, height: 16, batch_size: 1 } },
      "2": { class_type: "SaveLatent", inputs: { samples: ["1", 0], filename_prefix: "%second%" } },
    });
    await check(latent(16), missing);
    assert.equal((await check(latent(16), none)).status, "equal");
    assert.deepEqual((await check(latent(24), none)).differences, ["a file of node 2: other bytes"]);
  });

  it("refuses a graph without anything to compare, that fails, or that needs the network", async () => {
    const none = { "1": { class_type: "ext showAnythingLazy", inputs: {} } };
    await refuses(check(none, missing), "value.invalid", /nothing to compare/);
    await refuses(renderOutputs({ "1": { class_type: "Odd", inputs: {} } }, {}), "graph.unknown-class");
    const remote = { "1": { class_type: "ext remoteImageApi", inputs: { prompt: "x" } } };
    await refuses(renderOutputs(remote, {}), /network|graph/);
  });
});
