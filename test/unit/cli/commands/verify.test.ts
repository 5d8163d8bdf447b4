import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { decodePng, encodePng } from "latentkit";
import { filesIn, root, temporaryFolder } from "../../../helpers/folders.js";
import { saved, textsOf } from "../../../helpers/graph/receipt-graphs.js";
import { latentkit } from "../../../helpers/process/cli.js";
import { fakeGpu, onFakeGpu } from "../../../helpers/process/fake-gpu.js";
import { runHere as run } from "../../../helpers/process/run-here.js";

const inputDir = join(root, "test/graphs/input");

describe("latentkit verify", () => {
  const folder = temporaryFolder();
  const rendered = async (...more: string[]) => {
    const graph = join(folder(), "graph.json");
    writeFileSync(graph, JSON.stringify(saved()));
    const { code, err } = await run("render", graph, "--out", folder(), "--input", inputDir, "--quiet", ...more);
    assert.equal(code, 0, err);
    return join(folder(), filesIn(folder()).find((name) => name.endsWith(".png"))!);
  };
  const rewrite = async (path: string, change: object, edit: (data: Uint8Array) => void = () => {}) => {
    const { text, data, ...image } = await decodePng(readFileSync(path));
    edit(data as Uint8Array);
    const texts = Object.entries({ ...text, ...change }).filter(([, value]) => value !== "");
    writeFileSync(path, await encodePng({ ...image, data: data as Uint8Array }, { text: texts as [string, string][] }));
  };

  it("verified picture: exit code 0 and a line", async () => {
    const path = await rendered();
    assert.deepEqual(await run("verify", path, "--input", inputDir), { code: 0, out: `${path}: verified\n`, err: "" });
    const { code, out } = await run("verify", path, "--input", inputDir, "--json");
    const { status, differences, receipt } = JSON.parse(out) as Record<string, unknown>;
    assert.deepEqual([code, status, differences], [0, "verified", []]);
    assert.deepEqual(receipt, JSON.parse(textsOf(path).latentkit!));
  });

  it("reports the version of a picture that another version made", async () => {
    const path = await rendered();
    const receipt = { ...(JSON.parse(textsOf(path).latentkit!) as object), engine: "0.0.1" };
    await rewrite(path, { latentkit: JSON.stringify(receipt) });
    const { code, out } = await run("verify", path, "--input", inputDir);
    assert.equal(code, 0);
    assert.match(out, /: verified\n {2}It was rendered by latentkit 0\.0\.1; this is \d.*\n$/);
  });

  it("different picture: exit code 1 and each difference", async () => {
    const path = await rendered();
    const missing = await run("verify", path, "--input", folder());
    assert.equal(missing.code, 1);
    assert.match(
      missing.out,
      /: different\n {2}It cannot be rendered again: .*\n {2}Input file: expected a file of the input folder, received "lake\.png"/,
    );
    await rewrite(path, {}, (data) => data.reverse());
    const edited = await run("verify", path, "--input", inputDir, "--json");
    assert.equal(edited.code, 1);
    assert.match(edited.out, /"status": "different", "differences": \[\{"what": "pixels", /);
  });

  it("unverifiable file: exit code 2 and one sentence", async () => {
    const path = await rendered("--metadata", "none");
    const { code, out, err } = await run("verify", path);
    assert.deepEqual([code, out], [2, ""]);
    assert.equal(err, "latentkit: The picture cannot be verified: the file has no receipt.\n");
    assert.equal((await run("verify", join(folder(), "none.png"))).code, 2);
    assert.equal((await run("verify")).code, 2);
  });

  it("computes on --device, refuses a missing one", async () => {
    const path = await rendered();
    const here = await run("verify", path, "--input", inputDir, "--device", "cpu");
    assert.deepEqual(here, { code: 0, out: `${path}: verified\n`, err: "" });
    const unknown = await run("verify", path, "--device", "gpu");
    assert.deepEqual([unknown.code, unknown.out], [2, ""]);
    assert.equal(unknown.err, 'latentkit: --device: expected auto, cpu or cuda:N, received "gpu".\n');
    const missing = await latentkit(["verify", path, "--device", "cuda:7"], { env: fakeGpu() });
    assert.deepEqual([missing.code, missing.stdout], [1, ""]);
    assert.match(missing.stderr, /^latentkit: Device cuda:7 cannot be used: The CUDA driver sees /);
  });

  it("a device computes the CPU's pixels @long", async () => {
    const path = await rendered();
    const program = `
      import { readFileSync } from "node:fs";
      import { verifyImage } from ${JSON.stringify(import.meta.resolve("#src/render/verify/verify.js"))};
      const verdict = await verifyImage(readFileSync(${JSON.stringify(path)}), { inputDir: ${JSON.stringify(inputDir)}, device: "cuda:0" });
      send([verdict.status, counted("cuLaunchKernel")[0] > 0]);
    `;
    assert.deepEqual(await onFakeGpu(program, fakeGpu("", { LATENTKIT_DEVICE: "cpu" })), [["verified", true]]);
  });

  it("render --redact hides values, refuses a wrong key", async () => {
    const path = await rendered("--redact", "2.filename_prefix", "--redact", "secret");
    assert.match(textsOf(path).prompt!, /"filename_prefix": "\[redacted\]"/);
    assert.match((await run("inspect", path)).out, /^ {4}redacted {2}2\.filename_prefix\n {4}redacted {2}secret\n/m);
    const wrong = await run("render", join(folder(), "graph.json"), "--redact", "2.filename_prefx");
    assert.equal(wrong.code, 2);
    assert.match(wrong.err, /Did you mean 2\.filename_prefix\?/);
  });

  it("inspect prints the receipt, and whether the pixels match", async () => {
    const path = await rendered();
    const shown = await run("inspect", path);
    assert.match(shown.out, /\nreceipt:\n {4}version {3}latentkit \d+\.\d+\.\d+\n {4}host {6}preview \(a stand-in/);
    assert.match(shown.out, /^ {4}saved by {2}node 2, picture 0\n {4}pixels {4}blake3:\w{64} \(match this file\)/m);
    assert.match(shown.out, /^ {4}input {5}lake\.png sha256:\w{64}$/m);
    assert.ok(!shown.out.includes("latentkit:\n"));
    assert.match((await run("inspect", path, "--json")).out, /"receipt": \{.*"pixelsMatch": true\}\}\n$/);
    await rewrite(path, {}, (data) => data.reverse());
    assert.match((await run("inspect", path)).out, /blake3:\w{64} \(differ from this file's\)/);
    await rewrite(path, { latentkit: '{"version": 2}' });
    assert.match((await run("inspect", path)).out, /^latentkit:\n\{\n {4}"version": 2\n\}/m);
  });

  it("escapes control characters in texts of a file", async () => {
    const path = await rendered();
    const controls = "\u001b]0;x\u0007 \u009b2J \u007f";
    const receipt = JSON.parse(textsOf(path).latentkit!) as object;
    const latentkit = JSON.stringify({ ...receipt, seeds: { [controls]: controls }, engine: controls, node: controls });
    await rewrite(path, { note: controls, json: `["${"\u009b"}"]`, latentkit });
    for (const args of [
      ["inspect", path],
      ["verify", path, "--input", inputDir],
    ]) {
      const { out, err } = await run(...args);
      assert.match(out + err, /\\u001b|\\u009b/);
      assert.doesNotMatch(out + err, /[^\P{Cc}\n\t]/u);
    }
  });
});
