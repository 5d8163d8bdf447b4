import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
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
      /: different\n {2}It cannot be rendered again: .*\n {2}Input file: expected a file in the input folder, received "lake\.png"/,
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

  it("several files and folders: a line for each, the counts, contact sheets left out", async () => {
    const graph = join(folder(), "graph.json");
    writeFileSync(graph, JSON.stringify(saved()));
    const out = join(folder(), "out");
    const args = ["--out", out, "--input", inputDir, "--quiet"];
    assert.equal(
      (await run("render", graph, "--sweep", "2.filename_prefix=a/x,b", "--contact-sheet", ...args)).code,
      0,
    );
    const [first, second] = filesIn(out).filter((name) => name.endsWith(".png") && !name.startsWith("contact"));
    assert.deepEqual([dirname(first!), dirname(second!)], ["a", "."]);
    const good = await run("verify", out, "--input", inputDir);
    assert.deepEqual(good, {
      code: 0,
      out: `${join(out, first!)}: verified\n${join(out, second!)}: verified\n`,
      err: "2 verified\n",
    });
    await rewrite(join(out, second!), { latentkit: "" });
    writeFileSync(join(out, "broken.png"), "no picture");
    const missing = join(folder(), "none.png");
    const mixed = await run("verify", out, missing, "--input", inputDir);
    assert.deepEqual([mixed.code, mixed.err], [2, "1 verified, 1 unverifiable, 2 unreadable\n"]);
    assert.match(mixed.out, /^.*broken\.png: unreadable\n {2}.*PNG.*\n/m);
    assert.match(mixed.out, /none\.png: unreadable\n {2}Cannot read the image .*not found/);
    await rewrite(join(out, first!), {}, (data) => data.reverse());
    const different = await run("verify", out, "--input", inputDir, "--json");
    const lines = different.out
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    assert.equal(different.code, 1);
    assert.deepEqual(
      lines.map(({ path, status, type }) => [type ?? basename(String(path)), status]),
      [
        [basename(first!), "different"],
        [basename(second!), "unverifiable"],
        ["broken.png", "unreadable"],
        ["result", undefined],
      ],
    );
    assert.deepEqual(lines.at(-1), { type: "result", verified: 0, different: 1, unverifiable: 1, unreadable: 1 });
  });

  it("a folder without pictures, or a file that cannot be read: exit code 2, and nothing is different", async () => {
    for (const command of ["verify", "inspect"]) {
      const { code, out, err } = await run(command, folder());
      assert.deepEqual([code, out], [2, ""]);
      assert.match(err, /: no pictures in this folder\.$/m);
    }
    const pipe = join(folder(), "x.png");
    mkdirSync(pipe);
    assert.equal((await run("verify", pipe)).code, 2);
  });

  it("computes on --device, refuses a missing one", async () => {
    const path = await rendered();
    const here = await run("verify", path, "--input", inputDir, "--device", "cpu");
    assert.deepEqual(here, { code: 0, out: `${path}: verified\n`, err: "" });
    const unknown = await run("verify", path, "--device", "gpu");
    assert.deepEqual([unknown.code, unknown.out], [2, ""]);
    const refusal = '--device: expected auto, cpu or cuda:N, received "gpu". --models-device sets where networks run.';
    assert.equal(unknown.err, `latentkit: ${refusal}\n`);
    const missing = await latentkit(["verify", path, "--device", "cuda:7"], { env: fakeGpu() });
    assert.deepEqual([missing.code, missing.stdout], [1, ""]);
    assert.match(
      missing.stderr,
      /^latentkit: Device cuda:7 cannot be used: There is no cuda:7: the driver reports one device, cuda:0\.$/m,
    );
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
    assert.match(
      (await run("inspect", path, "--graph")).out,
      /^ {4}redacted {2}2\.filename_prefix\n {4}redacted {2}secret\n/m,
    );
    const wrong = await run("render", join(folder(), "graph.json"), "--redact", "2.filename_prefx");
    assert.equal(wrong.code, 2);
    assert.match(wrong.err, /Did you mean 2\.filename_prefix\?/);
  });

  it("inspect prints the receipt, and whether the pixels match", async () => {
    const path = await rendered();
    const shown = await run("inspect", path, "--graph");
    assert.match(shown.out, /\nreceipt:\n {4}version {3}latentkit \d+\.\d+\.\d+\n {4}host {6}preview \(a stand-in/);
    assert.match(shown.out, /^ {4}saved by {2}node 2, picture 0\n {4}pixels {4}blake3:\w{64} \(match\)/m);
    assert.match(shown.out, /^ {4}input {5}lake\.png sha256:\w{64}$/m);
    assert.ok(!shown.out.includes("latentkit:\n"));
    assert.match((await run("inspect", path, "--json")).out, /"receipt": \{.*"pixelsMatch": true\}\}\n$/);
    await rewrite(path, {}, (data) => data.reverse());
    assert.match((await run("inspect", path, "--graph")).out, /blake3:\w{64} \(differ\)/);
    await rewrite(path, { latentkit: '{"version": 2}' });
    assert.match((await run("inspect", path, "--graph")).out, /^latentkit:\n\{\n {4}"version": 2\n\}/m);
  });

  it("inspect shows first what a picture was made with, the rest with --graph", async () => {
    const sample = ["--set", "prompt=a lake", "--set", "width=64", "--set", "height=64", "--set", "5.denoise=0.75"];
    const graph = join(root, "examples/text-to-image.json");
    assert.equal((await run("render", graph, "--seeds", "7,8", ...sample, "--out", folder(), "--quiet")).code, 0);
    const [first, second] = filesIn(folder()).filter((name) => name.endsWith(".png"));
    const shown = await run("inspect", join(folder(), first!));
    const [head, ...rows] = shown.out.split("\n");
    assert.equal(head, `${join(folder(), first!)}: 64 x 64, RGB, 8 bits`);
    assert.deepEqual(rows.slice(0, 6), [
      "  prompt    a lake",
      "  negative  text, watermark",
      "  seed      7",
      "  sampler   euler, normal",
      "  steps     20, cfg 7, denoise 0.75",
      "  model     preview-sd15.safetensors",
    ]);
    assert.match(rows[6]!, /^ {2}receipt {3}latentkit \d\S* \(preview, a stand-in for real models\), pixels match$/);
    assert.deepEqual(rows.slice(7), ["  graph     7 nodes; --graph prints it", ""]);
    const all = await run("inspect", join(folder(), first!), "--graph");
    assert.match(all.out, /^prompt:\n\{\n/m);
    const both = await run("inspect", folder());
    assert.deepEqual([both.code, both.err], [0, "2 shown\n"]);
    assert.deepEqual(both.out.match(/^ {2}seed.*/gm), ["  seed      7", "  seed      8"]);
    writeFileSync(join(folder(), "z.png"), "no picture");
    const mixed = await run("inspect", folder(), "--json");
    const lines = mixed.out
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    assert.equal(mixed.code, 2);
    assert.deepEqual(
      lines.map(({ path, type }) => type ?? basename(String(path))),
      [first, second, "z.png", "result"],
    );
    const { prompt, seed, steps, model } = lines[1]!.settings as Record<string, unknown>;
    assert.deepEqual([prompt, seed, steps, model], ["a lake", "8", "20", "preview-sd15.safetensors"]);
  });

  it("escapes control characters in texts of a file", async () => {
    const path = await rendered();
    const controls = "\u001b]0;x\u0007 \u009b2J \u007f";
    const receipt = JSON.parse(textsOf(path).latentkit!) as object;
    const latentkit = JSON.stringify({ ...receipt, seeds: { [controls]: controls }, engine: controls, node: controls });
    await rewrite(path, { note: controls, json: `["${"\u009b"}"]`, latentkit });
    for (const args of [
      ["inspect", path],
      ["inspect", path, "--graph"],
      ["verify", path, "--input", inputDir],
    ]) {
      const { out, err } = await run(...args);
      assert.match(out + err, /\\u001b|\\u009b/);
      assert.doesNotMatch(out + err, /[^\P{Cc}\n\t]/u);
    }
  });
});
