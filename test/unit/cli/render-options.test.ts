import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import sharp from "sharp";
import { renderOptions } from "#src/cli/render-options.js";
import { readArguments } from "#src/cli/table/arguments.js";
import { type ArgumentsOf, BATCH_OPTIONS, COMMANDS, type ValuesOfCommand } from "#src/cli/table/commands.js";
import { pictureTexts } from "#src/io/pictures/decode.js";
import { pictureKind } from "#src/io/pictures/format.js";
import { filesIn, temporaryFolder } from "../../helpers/folders.js";
import { node } from "../../helpers/graph/graph-nodes.js";
import { runHere } from "../../helpers/process/run-here.js";

const graph = {
  "1": node("EmptyImage", { width: 8, height: 8, batch_size: 1, color: 255 }),
  "2": node("SaveImage", { images: ["1", 0], filename_prefix: "a" }),
};

describe("renderOptions", () => {
  const folder = temporaryFolder();

  it("reads every option of the command, and those alone", async () => {
    const path = join(folder(), "graph.json");
    writeFileSync(path, JSON.stringify(graph));
    const args = readArguments<ValuesOfCommand<"render">>("render", COMMANDS.render, [path])!;
    const names = new Set<string>();
    const spied: ArgumentsOf<"render"> = {
      has(name) {
        names.add(name);
        return args.has(name);
      },
      get(name) {
        names.add(name);
        return args.get(name);
      },
    };
    const terminal = { out: () => {}, err: () => {}, isTerminal: false, columns: 80, color: false, env: {} };
    await renderOptions(spied, terminal, new AbortController().signal);
    const { GRAPH: _, ...own } = { ...COMMANDS.render.operands, ...COMMANDS.render.options };
    const isOfBatch = (name: string) => Object.hasOwn(BATCH_OPTIONS, name);
    assert.deepEqual(
      [...names].filter((name) => name !== "GRAPH" && !isOfBatch(name)).sort(),
      Object.keys(own)
        .filter((name) => !isOfBatch(name))
        .sort(),
    );
  });
});

describe("options of saved pictures", () => {
  const folder = temporaryFolder();
  const run = (...args: string[]) => {
    writeFileSync(join(folder(), "graph.json"), JSON.stringify(graph));
    return runHere("render", join(folder(), "graph.json"), "--out", join(folder(), "out"), "--quiet", ...args);
  };
  const saved = () => filesIn(join(folder(), "out")).map((name) => join(folder(), "out", name));

  const kinds = () =>
    saved()
      .filter((name) => !name.endsWith(".jsonl"))
      .map((path) => pictureKind(readFileSync(path)));

  it("choose the format", async () => {
    assert.deepEqual(await run("--format", "webp", "--lossless").then(({ code, err }) => [code, err]), [0, ""]);
    assert.deepEqual(kinds(), ["webp"]);
    assert.notEqual(pictureTexts(readFileSync(saved()[0]!)).prompt, undefined);
  });

  it("choose the format of a batch, whose files are known when it goes on @long", async () => {
    const batch = ["--format", "avif", "--sweep", "1.color=1,2"];
    assert.equal((await run(...batch)).code, 0);
    assert.deepEqual(kinds(), ["avif", "avif"]);
    const { code, out } = await run(...batch, "--resume", "--json");
    assert.equal(code, 0);
    assert.equal(out.split("\n").filter((line) => line.includes('"item-skipped"')).length, 2, out);
  });

  it("--quiet leaves out progress, not warnings", async () => {
    const open = { ...graph, "2": node("SaveImage", { images: ["1", 0], filename_prefix: "{{name}}" }) };
    writeFileSync(join(folder(), "open.json"), JSON.stringify(open));
    const args = [join(folder(), "open.json"), "--out", join(folder(), "out"), "--quiet"];
    const { code, err } = await runHere("render", ...args);
    assert.equal(code, 0);
    assert.match(err, /^Warning: [^\n]*\{\{name\}\}[^\n]*\n$/);
  });

  it("come from a configuration if the command line has none", async () => {
    const config = join(folder(), "latentkit.yaml");
    writeFileSync(config, "format: { type: jpeg, quality: 40 }\n");
    const shown: unknown[] = [];
    for (const args of [[], ["--quality", "100"], ["--format", "png"]]) {
      const { code, out, err } = await run("--config", config, ...args);
      assert.equal(code, 0, err);
      const file = readFileSync(out.trim());
      const { format, chromaSubsampling } = await sharp(file).metadata();
      shown.push([format, chromaSubsampling]);
    }
    // colours of each pixel from quality 90 on
    assert.deepEqual(shown, [
      ["jpeg", "4:2:0"],
      ["jpeg", "4:4:4"],
      ["png", undefined],
    ]);
  });

  it("are refused together if a format has no such thing", async () => {
    for (const args of [
      ["--format", "gif"],
      ["--format", "jpeg", "--lossless"],
      ["--format", "webp", "--quality", "101"],
      ["--format", "webp", "--bits", "16"],
      ["--quality", "80"],
      ["--bits", "12"],
    ]) {
      const { code, err } = await run(...args);
      assert.equal(code, 2, args.join(" "));
      assert.match(err, /^latentkit: --format: expected png with --bits 8 or 16, [^\n]*, received --[^\n]+\.\n$/);
    }
    assert.match((await run("--format", "jpg")).err, /received --format jpg\. Did you mean jpeg\?\n$/);
    assert.deepEqual(saved(), []);
  });

  it("are not computed if the output folder cannot be written", async () => {
    const file = join(folder(), "file");
    writeFileSync(file, "");
    const { code, out, err } = await run("--out", join(file, "below"), "--json");
    assert.equal(code, 1);
    assert.ok(!out.includes("node-start"), out);
    assert.match(err, /^latentkit: Cannot write ".*below": a part of the path is not a folder \(ENOTDIR\)\.\n$/);
    const unneeded = await run("--out", join(file, "below"), "--targets", "1");
    assert.equal(unneeded.code, 0, unneeded.err);
  });
});
