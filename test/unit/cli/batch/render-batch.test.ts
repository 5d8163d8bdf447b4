import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { main } from "#src/cli/main.js";
import type { Terminal } from "#src/cli/terminal.js";
import { decodePng } from "#src/io/png/png.js";
import { filesIn, hashesIn, root, temporaryFolder } from "../../../helpers/folders.js";
import { latentkit } from "../../../helpers/process/cli.js";
import { skip } from "../../../helpers/skip.js";
import { mountDisk, remountDisk, unmountDisk } from "../../../helpers/small-disk.js";

const graph = join(root, "test/graphs/latent-noisy.json");
/** First line, of a graph that loads models. */
const HOST_LINE = /^Without a model, .*\n/;
/** Comes every 10 s, as on a busy machine. */
const PROGRESS_LINE = /^\d+(?: of \d+)? done(?:(?! in ).)*\n/gm;
/** Empties the line that a bar is on. */
const CLEAR = "\r\x1b[2K";
const SMALL = ["--set", "1.empty_latent_width=64"];
const ONE_SIDE = [...SMALL, "--set", "scene=lake"];

describe("latentkit render, many times", () => {
  const folder = temporaryFolder();
  const write = (name: string, content: string) => {
    writeFileSync(join(folder(), name), content);
    return join(folder(), name);
  };
  const out = (name = "out") => join(folder(), name);
  /** Runs in this process. */
  const run = (args: string[], terminal: Partial<Terminal> = {}, shared = ONE_SIDE) =>
    runGraph(graph, [...shared, ...args], terminal);
  async function runGraph(path: string, args: string[], terminal: Partial<Terminal> = {}) {
    const output = { out: "", err: "" };
    const code = await main(["render", path, ...args, ...(args.includes("--out") ? [] : ["--out", out()])], {
      out: (text) => {
        output.out += text;
      },
      err: (text) => {
        output.err += text;
      },
      isTerminal: false,
      columns: 80,
      color: false,
      env: {},
      ...terminal,
    });
    const err = output.err.replace(HOST_LINE, "").replace(PROGRESS_LINE, "");
    return {
      code,
      out: output.out,
      err,
      paths: output.out.trimEnd().split("\n").sort(),
      lines: err.trimEnd().split("\n"),
    };
  }
  const json = (text: string) =>
    text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  const images = (name = "out") => filesIn(out(name)).filter((file) => file.startsWith("latent-noisy/"));
  const seedOf = async (file: string) => {
    const { text } = await decodePng(readFileSync(join(out(), file)));
    return /"seed": (\d+)/.exec(text.prompt!)![1];
  };

  /** Standard input in small pieces. */
  async function* stream(text: string) {
    for (const part of text.match(/[\s\S]{1,7}/g) ?? []) yield Buffer.from(part);
  }

  it("prints the files as they are done and sums up on stderr", async () => {
    const { code, paths, err } = await run(["--seeds", "3,18446744073709551614..18446744073709551615"]);
    assert.equal(code, 0, err);
    assert.match(err, /^3 done in [\d.]+ s \([\d.]+ per second\)\n$/);
    assert.deepEqual(
      paths,
      images().map((file) => join(out(), file)),
    );
    assert.deepEqual(await Promise.all(images().map(seedOf)), ["3", "18446744073709551614", "18446744073709551615"]);
    // the same picture and metadata as a render of its own
    await run(["--out", out("one"), "--set", "2.seed=3", "--quiet"]);
    assert.equal(hashesIn(out("one"))["latent-noisy/gpu-stream_00001.png"], hashesIn(out())[images()[0]!]);
  });

  it("combines items, sweeps and seeds in order, up to a limit", async () => {
    const items = write("items.csv", "\ufeff2.start_at_step,2.end_at_step\r\n1,9\r\n2,9\r\n");
    const args = ["--items", items, "--sweep", "2.steps=10,20", "--seeds", "7..8", "--limit", "7", "--quiet"];
    const ran = await run([...args, "--name", "{index}-{2.start_at_step}-{2.steps}-{2.seed}"]);
    assert.deepEqual([ran.code, ran.err], [0, ""]);
    const names = images().map((file) => basename(file, ".png"));
    assert.deepEqual(names, ["0-1-10-7", "1-1-10-8", "2-1-20-7", "3-1-20-8", "4-2-10-7", "5-2-10-8", "6-2-20-7"]);
  });

  it("lists every wrong row with line and column before the first render, and exits with 2", async () => {
    const rows = "1,karras\n,karras\n3,karas\n4\n5,normal\n";
    const items = write("items.csv", `2.seed,2.scheduler\n${rows}`);
    const at = (line: string) => line.replaceAll(`${folder()}/`, "");
    const wrong = [
      "items.csv, line 3, column 1 (2.seed): expected a value, received an empty field.",
      'items.csv, line 4, column 2: Node 2 (ext latentNoisy), input "scheduler": expected simple, sgm_uniform, karras, exponential, ddim_uniform, beta, normal, linear_quadratic or kl_optimal, received "karas". Did you mean karras?',
      "items.csv, line 5, column 2 (2.scheduler): expected 2 fields in the row, received 1.",
      "latentkit: items.csv: 3 of 5 items are invalid; nothing was rendered.",
    ];
    for (const more of [[], ["--check"]]) {
      const { code, lines, out: stdout } = await run(["--items", items, ...more]);
      assert.deepEqual([code, lines.map(at), stdout], [2, wrong, ""], more.join(" "));
    }
    const swept = await run(["--items", items, "--sweep", "2.steps=10,20", "--json"]);
    assert.deepEqual(swept.lines.map(at), wrong);
    assert.deepEqual(
      json(swept.out).map(({ type, index, status, error }) => [
        type,
        index ?? status,
        (error as { code: string }).code,
      ]),
      [
        ["item-invalid", 2, "items.invalid"],
        ["item-invalid", 4, "input.not-in-list"],
        ["item-invalid", 6, "items.invalid"],
        ["result", "failed", "items.invalid"],
      ],
    );
    // rows beyond the limit are not rendered, and not checked either
    assert.equal((await run(["--items", items, "--limit", "1", "--quiet"])).code, 0);
    assert.equal(images().length, 1);
    // by any name of the input, as the column has it
    const titled = await run(["--items", write("items.csv", "steps,scene\n10,x\nmany,y\n")], {}, SMALL);
    assert.match(titled.err, /^.*items\.csv, line 3, column 1: Node 2 .*input "steps": .*received "many"/);
  });

  it("--check says how many items and files come, with the first names, and writes nothing", async () => {
    const items = write(
      "items.csv",
      `prompt,2.seed,title\n${Array.from({ length: 40 }, (_, i) => `a fox,${i},t${i}`).join("\n")}`,
    );
    const args = ["--items", items, "--sweep", "2.steps=10,20", "--name", "{title} {steps} {seed}", "--check"];
    const { code, out: stdout, err } = await run(args, {}, SMALL);
    assert.deepEqual([code, err], [0, ""]);
    assert.equal(
      stdout.replaceAll(`${folder()}/`, ""),
      "80 items from items.csv: all valid.\nAt least 80 files, starting with:\n" +
        "  out/latent-noisy/t0 10 0_00001\n  out/latent-noisy/t0 20 0_00002\n  out/latent-noisy/t1 10 1_00003\n  …\n",
    );
    assert.deepEqual(filesIn(folder()), ["items.csv"]);
    const [result] = json((await run([...args, "--limit", "3", "--json"], {}, SMALL)).out);
    assert.deepEqual([result!.status, result!.items, result!.files], ["success", 3, 3]);
    assert.match((await run(["--seeds", "0..999999999", "--check"])).out, /^1000000000 items: all valid\.\n/);
    // the journal of a batch that came to a good end stays
    assert.equal((await run(["--seeds", "1", "--quiet"])).code, 0);
    assert.equal((await run(["--seeds", "1", "--check"])).code, 0);
    assert.ok(filesIn(out()).includes("latent-noisy.journal.jsonl"));
    const names = images();
    assert.deepEqual(names, ["latent-noisy/gpu-stream_00001.png"]);
  });

  it("refuses wrong values of a sweep, whatever their place, before anything is written", async () => {
    const { code, err } = await run(["--sweep", "2.scheduler=karras,none", "--seeds", "0..24"]);
    assert.equal(code, 2);
    assert.match(
      err,
      /^latentkit: --sweep 2\.scheduler: Node 2 \(ext latentNoisy\), input "scheduler": expected .*received "none"/,
    );
    const range = await run(["--sweep", "steps=0..99999999999"]);
    assert.match(range.err, /^latentkit: --sweep steps: Node 2 .*received 99999999999/);
    assert.deepEqual(filesIn(folder()), []);
  });

  it("reads items from standard input, and checks them while they come", async () => {
    const lines = '{"2.seed": 1}\n{"2.sed": 2}\n{"2.seed": 3, "2.scheduler": "none"}\n{"2.seed": 4}\n';
    const streamed = (text: string, more: string[] = []) => run(["--items", "-", ...more], { input: stream(text) });
    const { code, lines: err } = await streamed(lines);
    assert.equal(code, 1);
    assert.deepEqual(await Promise.all(images().map(seedOf)), ["1", "4"]);
    assert.match(err.join("\n"), /^Item 1: stdin, line 2: node 2 .* no input "sed"/m);
    assert.match(err.join("\n"), /^Item 2: stdin, line 3: Node 2 .*received "none"/m);
    assert.match(err.at(-1)!, /^2 done, 2 failed in /);
    const csv = await streamed("\n\n2.seed,2.steps\n7,20\n8,many\n", ["--check"]);
    assert.equal(csv.code, 2);
    assert.match(csv.err, /^stdin, line 5, column 2: Node 2 .*\nlatentkit: stdin: 1 of 2 items is invalid/);
    assert.match((await streamed("2.seed\n7\n", ["--check"])).out, /^1 item from stdin: valid\.\n/);
    assert.equal((await streamed("")).code, 2);
    // a pipe that stays open delays nothing
    const open = await latentkit(["render", graph, ...ONE_SIDE, "--items", "-", "--limit", "1", "--out", out("pipe")], {
      stdin: "2.seed\n7\n8\n9\n10\n",
    });
    assert.equal(open.code, 0, open.stderr);
  });

  it("draws random seeds, the same again with --resume, and records them", async () => {
    const items = write("items.csv", "2.steps,2.seed\n10,random\n20,random\n20,random\n");
    assert.equal((await run(["--items", items, "--quiet"])).code, 0);
    const seeds = await Promise.all(images().map(seedOf));
    assert.equal(new Set(seeds).size, 3);
    const journal = readFileSync(out("out/latent-noisy.journal.jsonl"), "utf8");
    for (const seed of seeds) assert.ok(journal.includes(`"2.seed": ${seed}`), journal);
    // a row in front, and a picture that is gone
    write("items.csv", "2.steps,2.seed\n5,random\n10,random\n20,random\n20,random\n");
    rmSync(join(out(), images()[1]!));
    const resumed = await run(["--items", items, "--resume"]);
    assert.match(resumed.err, /^2 done, 2 skipped in /m);
    assert.deepEqual((await Promise.all(images().map(seedOf))).slice(0, 3), seeds);
    const shared = await run(["--seeds", "random:2", "--sweep", "2.steps=1,2", "--out", out("b"), "--quiet"]);
    assert.equal(shared.code, 0);
    const of = async (name: string) =>
      /"seed": (\d+)/.exec((await decodePng(readFileSync(join(out("b"), name)))).text.prompt!)![1];
    const [a, b, c, d] = await Promise.all(images("b").map(of));
    assert.deepEqual([c, d], [a, b]);
    assert.notEqual(a, b);
    const one = await runGraph(graph, [...ONE_SIDE, "--set", "seed=random", "--out", out("c")]);
    const [, drawn] = /^seed = (\d+)$/m.exec(one.err)!;
    assert.equal(
      /"seed": "?(\d+)/.exec((await decodePng(readFileSync(join(out("c"), images("c")[0]!)))).text.prompt!)![1],
      drawn,
    );
  });

  it("names failed items as they fail, with their values", async () => {
    const pictures = out("photos");
    mkdirSync(pictures);
    for (let i = 0; i < 25; i++) writeFileSync(join(pictures, `p${i}.png`), "no picture");
    const small = write(
      "small.json",
      JSON.stringify({
        "1": { class_type: "LoadImage", inputs: { image: "x.png" } },
        "2": { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "small" } },
      }),
    );
    const { code, lines } = await runGraph(small, ["--items", pictures]);
    assert.equal(code, 1);
    assert.equal(lines.length, 26);
    assert.match(lines.at(-1)!, /^0 done, 25 failed in /);
    assert.match(lines[0]!, /^Item \d+ \(1\.image "p\d+\.png"\): Node 1 \(LoadImage\)/);
  });

  it("starts nothing further with --fail-fast", async () => {
    const input = stream(`{"2.seed": 1}\n{"2.sed": 2}\n${'{"2.seed": 3}\n'.repeat(500)}`);
    const { code, lines } = await run(["--items", "-", "--fail-fast"], { input });
    assert.equal(code, 1);
    assert.match(
      lines[0]!,
      /^Item 1: stdin, line 2: node 2 \(ext latentNoisy\) has no input "sed"\. Did you mean 2\.seed\?$/,
    );
    assert.ok(images().length < 500);
  });

  it("refuses wrong options in one sentence, before anything is written", async () => {
    const items = write("items.csv", "2.seed,2.stps\n1,2\n");
    const refused = async (args: string[], pattern: RegExp) => {
      const { code, out: stdout, err } = await run(args);
      assert.match(err, pattern);
      assert.deepEqual([code, stdout, err.trimEnd().split("\n").length], [2, "", 1]);
    };
    await refused(["--items", items], /items\.csv, line 1, column 2 \(2\.stps\): node 2 .*Did you mean 2\.steps\?/);
    await refused(["--items", join(folder(), "none.csv")], /none\.csv: the file does not exist/);
    await refused(["--items", write("items.md", "")], /expected a file named \.csv, \.tsv, \.jsonl or \.txt/);
    await refused(["--seeds", "9..1"], /--seeds: expected a range that goes up, received "9\.\.1"/);
    await refused(["--seeds", "1", "--set", "2.seed=1"], /--seeds: there is nothing to set; 2\.seed is already set/);
    await refused(["--sweep", "2.sed=1,2"], /--sweep 2\.sed: node 2 .*Did you mean 2\.seed\?/);
    await refused(["--sweep", "2.seed=1", "--set", "2.seed=1"], /--sweep 2\.seed: 2\.seed is already set by --set/);
    await refused(["--seeds", "1", "--set", "sceen=x"], /--set: "sceen" names no node's input/);
    for (const [option, value, least] of [
      ["limit", "0", 1],
      ["concurrency", "many", 1],
      ["retry", "1.5", 0],
    ]) {
      await refused(
        [`--${option}`, String(value)],
        new RegExp(`--${option}: expected a whole number from ${least}, received "${value}"`),
      );
    }
    for (const sheet of [
      ["--contact-sheet=sheet.jpg"],
      ["--contact-sheet", "sheet.jpg"],
      ["--contact-sheet", "sheet"],
    ]) {
      await refused(["--seeds", "1", ...sheet], /--contact-sheet: expected a name that ends in \.png, received "sheet/);
    }
    await refused(["--items", write("none.jsonl", "")], /none\.jsonl: expected at least one item, received none/);
    await refused(["--items", write("none.csv", "2.seed\n\n")], /none\.csv: expected at least one item, received none/);
    await refused(["--seeds", "1", "--name", "a/b"], /name: expected a file name/);
    assert.deepEqual(filesIn(folder()), ["items.csv", "items.md", "none.csv", "none.jsonl"]);
  });

  it("refuses broken quoting with the line, after the wrong rows before it", async () => {
    const items = write("items.csv", 'scene,2.seed\nlake,1\nhill,x\n"hill" top,3\n');
    const { code, err, out: stdout } = await run(["--items", items, "--set", "2.steps=20", "--json"]);
    assert.equal(code, 2);
    assert.match(err, /^.*items\.csv, line 3, column 2: Node 2 /);
    assert.match(err, /items\.csv, line 4, column 1: in the row that begins here, a comma is missing/);
    assert.deepEqual(filesIn(folder()), ["items.csv"]);
    const last = json(stdout).at(-1)!;
    assert.deepEqual([last.type, last.status, last.done], ["result", "failed", 0]);
    assert.match((last.error as { message: string }).message, /line 4/);
  });

  it("prints one event a line with --json, the result last", async () => {
    const input = stream('{"2.seed": 18446744073709551615}\n{"2.seed": "x"}\n');
    const { code, out: stdout, err } = await run(["--items", "-", "--contact-sheet", "--json"], { input });
    assert.equal(code, 1);
    assert.match(err, /^Item 1: stdin, line 2: Node 2/);
    assert.match(stdout, /"type": "item-done", "index": 0, "values": \{"2\.seed": 18446744073709551615\}/);
    const events = json(stdout);
    assert.deepEqual(
      events
        .map(({ type }) => String(type))
        .filter((type) => type !== "item-start")
        .sort(),
      ["batch-done", "batch-start", "item-done", "item-failed", "result"],
    );
    const { ms, failures, ...result } = events.at(-1)!;
    const journal = join(out(), "latent-noisy.journal.jsonl");
    const contactSheet = [join(out(), "contact-sheet.png")];
    assert.deepEqual(result, {
      type: "result",
      status: "failed",
      done: 1,
      skipped: 0,
      failed: 1,
      journal,
      contactSheet,
    });
    assert.ok(typeof ms === "number");
    assert.deepEqual(
      (failures as { index: number; error: { code: string } }[]).map(({ index, error }) => [index, error.code]),
      [[1, "input.wrong-type"]],
    );
  });

  it("refuses an unfilled placeholder and an impossible name at once", async () => {
    const items = write("items.csv", "2.seed\n1\n2\n");
    const without = async (args: string[], pattern: RegExp) => {
      const { code, err } = await run(["--items", items, ...args], {}, []);
      assert.match(err, pattern);
      assert.equal(code, 2);
    };
    await without([], /Node 1, input "positive": no value is given for \{\{scene\}\}; set scene,/);
    await without(["--set", "scene=x", "--name", "{sceen}"], /name: expected fields .*received \{sceen\}/);
    await without(["--set", "scene=x", "--name", "{2.steps} {1.seed}"], /received \{1\.seed\}/);
    assert.deepEqual(filesIn(folder()), ["items.csv"]);
    const lines = write("items.jsonl", '{"2.seed": 1}\n{"2.seed": 2, "scene": "hill"}\n');
    const { code, err } = await run(["--items", lines, "--name", "{scene} {2.seed}"]);
    assert.equal(code, 0, err);
    assert.deepEqual(images(), ["latent-noisy/hill 2_00002.png", "latent-noisy/lake 1_00001.png"]);
    assert.equal(err.split("Warning: --set scene is overridden by ").length, 2, err);
    assert.match(err, /is overridden by .*items\.jsonl, line 2\.$/m);
  });

  it("resumes its journal, and begins a new one after a good end", async () => {
    const items = write("items.csv", "2.seed\n1\n\n2x\n3\n");
    assert.equal((await run(["--items", "-"], { input: stream(readFileSync(items, "utf8")) })).code, 1);
    const before = hashesIn(out("out/latent-noisy"));
    write("items.csv", "2.seed\n1\n\n2\n3\n");
    const again = await run(["--items", items]);
    assert.equal(again.code, 2);
    assert.match(again.err, /Journal .*latent-noisy\.journal\.jsonl: it belongs to an earlier batch/);
    const resumed = await run(["--items", items, "--resume"]);
    assert.equal(resumed.code, 0);
    assert.match(resumed.err, /^1 done, 2 skipped in /);
    assert.deepEqual(await Promise.all(images().map(seedOf)), ["1", "2", "3"]);
    const after = hashesIn(out("out/latent-noisy"));
    for (const [name, hash] of Object.entries(before)) assert.equal(after[name], hash);
    assert.match((await run(["--items", items, "--resume"])).err, /^0 done, 3 skipped in /);
    // nothing is left to resume: the same command renders anew, beside the first pictures
    assert.equal((await run(["--items", items])).code, 0);
    assert.equal(images().length, 6);
    assert.equal((await run(["--seeds", "1", "--journal", join(folder(), "own.jsonl")])).code, 0);
    assert.ok(filesIn(folder()).includes("own.jsonl"));
    assert.match(
      (await run(["--seeds", "1", "--journal", join(folder(), "own.jsonl")])).err,
      /own\.jsonl: it belongs to an earlier batch/,
    );
  });

  it("ends at a disk that takes no more files, and says how to go on", async function () {
    const disk = out("disk");
    mkdirSync(disk);
    const seeds = ["--seeds", "1..200", "--out", disk, "--journal", out("batch.jsonl")];
    const full = async (options: string, sentence: string, more: string[] = []) => {
      const { code, err, lines } = await run([...seeds, ...more]);
      assert.equal(code, 1, err);
      assert.ok(lines.at(-1)!.endsWith(`${sentence} to continue from ${out("batch.jsonl")}.`), `${options}: ${err}`);
      assert.match(lines.at(-2)!, /^\d+ done(, \d+ skipped)? in /);
      return lines.at(-1)!;
    };
    if (!mountDisk(disk, "size=192k")) skip(this, "this user may not mount a small disk");
    try {
      const room = ": the disk is full (ENOSPC). Free some disk space, then run the same command with --resume";
      assert.match(await full("size=192k", room), /^latentkit: Node .*: Cannot write "/);
      remountDisk(disk, "ro");
      const allow =
        ": the file system is read-only (EROFS). Fix the permissions, then run the same command with --resume";
      await full("ro", allow, ["--resume"]);
      remountDisk(disk, "rw,size=8m");
      const result = await run([...seeds, "--resume", "--quiet"]);
      assert.deepEqual([result.code, filesIn(join(disk, "latent-noisy")).length], [0, 200]);
    } finally {
      unmountDisk(disk);
    }
  });

  it("makes a contact sheet, the same one for a batch that was resumed @long", async () => {
    const sheet = join(folder(), "sheet.png");
    const args = ["--seeds", "0..4", "--quiet"];
    assert.equal((await run([...args, "--contact-sheet", sheet])).code, 0);
    const whole = readFileSync(sheet);
    const { width, height } = await decodePng(whole);
    assert.ok(width > 200 && height > 100);
    assert.equal((await run([...args, "--limit", "2", "--out", out("two"), "--contact-sheet"])).code, 0);
    const part = readFileSync(join(out("two"), "contact-sheet.png"));
    assert.notDeepEqual(part, whole);
    const resumed = await run([...args, "--resume", "--out", out("two"), "--contact-sheet"]);
    assert.equal(resumed.code, 0);
    assert.deepEqual(readFileSync(join(out("two"), "contact-sheet.png")), whole);
    const told = await run(["--seeds", "9", "--contact-sheet", "--out", out("three")]);
    assert.match(told.err, /^Contact sheet: .*contact-sheet\.png$/m);
    assert.ok(told.paths.every((path) => !path.includes("contact-sheet")));
  });

  it("renders the graph that it has read, whatever its file holds by then", async () => {
    const solid = (height: number) =>
      JSON.stringify({
        1: { class_type: "EmptyImage", inputs: { width: 8, height, batch_size: 1, color: 1 } },
        2: { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "a" } },
      });
    const path = write("solid.json", solid(8));
    async function* input() {
      write("solid.json", solid(16));
      yield Buffer.from("1.color\n2\n");
    }
    const { code, paths, err } = await runGraph(path, ["--items", "-"], { input: input() });
    assert.equal(code, 0, err);
    assert.equal((await decodePng(readFileSync(paths[0]!))).height, 8);
  });

  it("makes a labelled grid of two or three sweeps, a page for each value of the third", async () => {
    const sweeps = ["--sweep", "2.steps=10,20", "--sweep", "2.scheduler=normal,karras"];
    const two = await run([...sweeps, "--seeds", "3", "--grid", "--contact-sheet", "--json"]);
    assert.equal(two.code, 0, two.err);
    assert.deepEqual(json(two.out).at(-1)!.grid, [join(out(), "grid.png")]);
    const named = join(folder(), "named.png");
    const three = await run([...sweeps, "--seeds", "3..4", "--grid", named, "--out", out("three")]);
    assert.deepEqual(three.err.match(/^Grid: .*$/gm)?.length, 2, three.err);
    assert.ok(existsSync(named) && existsSync(join(folder(), "named-2.png")));
    for (const [args, pattern] of [
      [["--seeds", "1"], /--grid: expected two or three of --sweep and --seeds, received 1\./],
      [
        ["--seeds", "1", "--items", write("items.csv", "scene\nlake\n")],
        /--items cannot be combined with --grid: a grid shows only sweeps and seeds\./,
      ],
      [[...sweeps, "--grid", "x.jpg"], /grid: expected a name that ends in \.png/],
      [[...sweeps, "--grid", "x.png", "--contact-sheet", "x.png"], /--grid: expected a file other than the contact/],
    ] as const) {
      const { code, err } = await run([...args, ...(args.includes("--grid" as never) ? [] : ["--grid"])]);
      assert.match(err, pattern);
      assert.equal(code, 2);
    }
  });

  it("keeps redacted values out of contact sheet and journal @long", async () => {
    const sheetOf = async (name: string, args: string[]) => {
      const { code, err } = await run([...args, "--out", out(name), "--contact-sheet", "--quiet"], {}, SMALL);
      assert.equal(code, 0, err);
      const text = readFileSync(join(out(name), "latent-noisy.journal.jsonl"), "utf8");
      return { sheet: readFileSync(join(out(name), "contact-sheet.png")), text };
    };
    const scenes = ["--sweep", "scene=secret,hidden", "--set", "2.seed=1"];
    const bare = [...scenes, "--redact", "positive"];
    const shown = await sheetOf("a", scenes);
    assert.match(shown.text, /"scene": "secret"/);
    const redacted = await sheetOf("b", bare);
    assert.doesNotMatch(redacted.text, /secret|hidden/);
    assert.match(redacted.text, /"values": \{"scene": "\[redacted\]"\}/);
    assert.notDeepEqual(redacted.sheet, shown.sheet);
    const dotted = ["--sweep", "1.positive=secret,hidden", "--set", "2.seed=1"];
    for (const key of ["1.positive", "positive", "1"]) {
      const { text, sheet } = await sheetOf(key, [...dotted, "--redact", key]);
      assert.doesNotMatch(text, /secret|hidden/);
      // the same pictures, without a word of what varies
      assert.deepEqual(sheet, redacted.sheet);
    }
    const resumed = await sheetOf("b", [...bare, "--resume"]);
    assert.deepEqual(resumed.sheet, redacted.sheet);
  });

  it("prints control characters of an item as escapes", async () => {
    const items = write("items.jsonl", `${JSON.stringify({ "2.\u001b[31msed": 1 })}\n{"2.seed": 1}\n`);
    const { code, err } = await run(["--items", items]);
    assert.equal(code, 2);
    assert.ok(!err.includes("\u001b"), JSON.stringify(err));
    assert.match(err, /no input "\\u001b\[31msed"/);
  });

  it("refuses a contact sheet over a picture, before anything starts", async () => {
    assert.equal((await run(["--seeds", "1", "--quiet"])).code, 0);
    const picture = join(out(), images()[0]!);
    const before = hashesIn(out());
    const { code, err } = await run(["--seeds", "2", "--contact-sheet", picture]);
    assert.equal(code, 2);
    assert.match(
      err,
      /--contact-sheet: expected a path that does not exist yet, or one of an earlier contact sheet, received /,
    );
    assert.deepEqual(hashesIn(out()), before);
    // a name that is free before the batch and a picture's after it
    const next = join(out(), "latent-noisy/gpu-stream_00002.png");
    const late = await run(["--seeds", "2", "--contact-sheet", next]);
    assert.equal(late.code, 1);
    assert.match(late.err, /Contact sheet: ".*" is another picture; choose a free name or an earlier sheet/);
    assert.equal(await seedOf("latent-noisy/gpu-stream_00002.png"), "2");
  });

  it("keeps results for other batches with --cache @long", async () => {
    // there and back: what takes less than encoding is not worth a file
    const twice = JSON.parse(readFileSync(graph, "utf8")) as Record<string, { inputs: object } & object>;
    twice["5"] = { class_type: "VAEEncode", inputs: { pixels: ["3", 0], vae: ["1", 2] } } as never;
    twice["6"] = { class_type: "VAEDecode", inputs: { samples: ["5", 0], vae: ["1", 2] } } as never;
    Object.assign(twice["4"]!.inputs, { images: ["6", 0] });
    const large = ["empty_latent_width", "empty_latent_height"].flatMap((side) => ["--set", `1.${side}=1024`]);
    const size = [...large, "--set", "scene=lake", "--seeds", "1,2", "--quiet"];
    const args = [...size, "--cache", join(folder(), "cache")];
    const run = (more: string[]) => runGraph(write("twice.json", JSON.stringify(twice)), more);
    assert.equal((await run([...args, "--out", out("a")])).code, 0);
    const kept = filesIn(join(folder(), "cache"));
    assert.ok(kept.length > 0);
    const nodesOf = () => kept.map((file) => statSync(join(folder(), "cache", file)).ino);
    const before = nodesOf();
    assert.equal((await run([...args, "--out", out("b")])).code, 0);
    assert.deepEqual(nodesOf(), before, "nothing was kept again that was known");
    assert.deepEqual(hashesIn(out("b/latent-noisy")), hashesIn(out("a/latent-noisy")));
    assert.equal((await run([...size, "--out", out("c")])).code, 0);
    assert.deepEqual(hashesIn(out("c/latent-noisy")), hashesIn(out("a/latent-noisy")));
    const refused = await run([...size, "--cache", ""]);
    assert.deepEqual([refused.code, refused.out], [2, ""]);
    assert.match(refused.err, /Disk cache: expected a folder/);
  });

  it("draws a bar on a terminal, and prints a warning once", async () => {
    const noisy = JSON.parse(readFileSync(graph, "utf8")) as Record<string, { inputs: Record<string, unknown> }>;
    noisy["2"]!.inputs.stepz = 1;
    const path = write("warns.json", JSON.stringify(noisy));
    let [stdout, err] = ["", ""];
    const terminal: Terminal = {
      out: (text) => {
        stdout += text;
        assert.ok(err === "" || err.endsWith("\n") || err.endsWith(CLEAR), JSON.stringify(err.slice(-40)));
      },
      err: (text) => {
        err += text;
      },
      isTerminal: true,
      columns: 100,
      color: true,
      env: {},
    };
    assert.equal(await main(["render", path, "--set", "scene=x", "--seeds", "0..9", "--out", out()], terminal), 0);
    assert.equal(stdout.trimEnd().split("\n").length, 10);
    assert.match(err, /░.*\d+\/10 /);
    assert.equal(err.split("Warning: ").length, 2, err);
    assert.match(err.split(CLEAR).at(-1)!, /^10 done in [\d.]+ s/);
  });

  it("shows its options in --help", async () => {
    const { code, out: stdout } = await run(["--help"]);
    assert.equal(code, 0);
    for (const option of [
      "seeds",
      "items",
      "sweep",
      "limit",
      "name",
      "extra-columns",
      "check",
      "concurrency",
      "retry",
      "fail-fast",
      "resume",
      "journal",
      "cache",
      "contact-sheet",
    ]) {
      assert.match(stdout, new RegExp(`^  --${option} `, "m"));
    }
    assert.ok(stdout.split("\n").every((line) => line.length <= 100));
  });
});

describe("latentkit render, many times, as a process", () => {
  const folder = temporaryFolder();
  const args = (...more: string[]) => ["render", graph, ...ONE_SIDE, "--out", join(folder(), "out"), ...more];
  const pictures = () => filesIn(join(folder(), "out")).filter((file) => file.endsWith(".png"));
  const leftovers = () => filesIn(join(folder(), "out")).filter((file) => basename(file).startsWith("."));

  it("finishes running items at Ctrl-C, and resumes to equal files @long", async () => {
    let isSent = false;
    const cut = await latentkit(args("--seeds", "0..99999"), {
      onStdout: (_, kill) => {
        if (!isSent) kill("SIGINT");
        isSent = true;
      },
    });
    assert.equal(cut.code, 130, cut.stderr);
    assert.match(cut.stderr, /^Stopping after the items in progress\. Press Ctrl-C again to stop immediately\.$/m);
    assert.match(
      cut.stderr,
      /^Interrupted\. Run the same command with --resume to continue from .*latent-noisy\.journal\.jsonl\.$/m,
    );
    assert.deepEqual(
      cut.stdout.trimEnd().split("\n").sort(),
      pictures().map((file) => join(folder(), "out", file)),
    );
    assert.deepEqual(leftovers(), []);
    const done = pictures().length;
    const limit = done + 10;
    const resumed = await latentkit(args("--seeds", "0..99999", "--limit", String(limit), "--resume"));
    assert.equal(resumed.code, 0, resumed.stderr);
    assert.match(resumed.stderr, new RegExp(`^10 done, ${done} skipped in`, "m"));
    const whole = hashesIn(join(folder(), "out/latent-noisy"));
    rmSync(join(folder(), "out"), { recursive: true });
    assert.equal((await latentkit(args("--seeds", "0..99999", "--limit", String(limit)))).code, 0);
    assert.deepEqual(hashesIn(join(folder(), "out/latent-noisy")), whole);
  });

  it("takes a closed terminal as Ctrl-C, and leaves no temporary file @long", async () => {
    let isSent = false;
    const cut = await latentkit(args("--seeds", "0..99999"), {
      onStdout: (_, kill) => {
        if (!isSent) kill("SIGHUP");
        isSent = true;
      },
    });
    assert.equal(cut.code, 130, cut.stderr);
    assert.match(cut.stderr, /^Interrupted\. Run the same command with --resume to continue/m);
    assert.deepEqual(leftovers(), []);
  });

  it("comes to its end though its own terminal is gone @long", async function () {
    if (spawnSync("script", ["--version"]).error !== undefined) skip(this, "script is not installed");
    const code = join(folder(), "code");
    const command = [process.execPath, join(root, "bin/latentkit.mjs"), ...args("--seeds", "0..1999")]
      .map((word) => `'${word}'`)
      .join(" ");
    // the shell, which hears of it first, hands it on and tells how the command ended
    const line = `trap 'kill -HUP $!' HUP; ${command} & wait $!; wait $!; echo $? > '${code}'`;
    const terminal = spawn("script", ["-qfc", line, "/dev/null"], { stdio: ["ignore", "pipe", "ignore"] });
    for await (const chunk of terminal.stdout) if (String(chunk).includes(".png")) break;
    terminal.kill("SIGKILL");
    for (let i = 0; i < 600 && !(existsSync(code) && readFileSync(code, "utf8") !== ""); i++) {
      await new Promise((done) => setTimeout(done, 50));
    }
    assert.equal(readFileSync(code, "utf8").trim(), "129");
    assert.deepEqual(leftovers(), []);
    const done = pictures().length;
    const limit = ["--limit", String(done + 2), "--resume"];
    const resumed = await latentkit(args("--seeds", "0..1999", ...limit));
    assert.match(resumed.stderr, new RegExp(`^2 done, ${done} skipped in`, "m"));
  });

  it("stops at once at a second Ctrl-C, and leaves no half picture", async () => {
    let isSent = false;
    const size = ["--set", "1.empty_latent_width=4096", "--set", "1.empty_latent_height=4096"];
    const cut = await latentkit(args(...size, "--seeds", "0..99999", "--json"), {
      onStdout: (text, kill) => {
        if (isSent || !text.includes('"item-start"')) return;
        isSent = true;
        kill("SIGINT");
      },
      // signals that come together would be one; an item of that size takes far longer
      onStderr: (text, kill) => {
        if (text.endsWith("to stop immediately.\n")) kill("SIGINT");
      },
    });
    assert.equal(cut.code, 130, cut.stderr);
    assert.match(cut.stderr, /^Stopping after .*\nStopping immediately\.\nInterrupted\. /);
    assert.deepEqual([pictures(), leftovers()], [[], []]);
    const result = JSON.parse(cut.stdout.trimEnd().split("\n").at(-1)!) as Record<string, unknown>;
    assert.deepEqual([result.type, result.status, result.done], ["result", "interrupted", 0]);
  });
});
