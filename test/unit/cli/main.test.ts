import assert from "node:assert/strict";
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { main } from "#src/cli/main.js";
import type { Terminal } from "#src/cli/terminal.js";
import { filesIn, root, temporaryFolder } from "../../helpers/folders.js";
import { latentkit } from "../../helpers/process/cli.js";
import { loadedFiles } from "../../helpers/process/loaded-files.js";
import { skip } from "../../helpers/skip.js";

const graphs = join(root, "test/graphs");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };

/** Runs the command line in this process. */
async function run(args: string[], terminal: Partial<Terminal> = {}) {
  let [out, err] = ["", ""];
  const code = await main(args, {
    out: (text) => {
      out += text;
    },
    err: (text) => {
      err += text;
    },
    isTerminal: false,
    columns: 80,
    color: false,
    env: {},
    ...terminal,
  });
  return { code, out, err };
}

describe("latentkit", () => {
  const folder = temporaryFolder();
  const write = (name: string, content: unknown) => {
    writeFileSync(join(folder(), name), typeof content === "string" ? content : JSON.stringify(content));
    return join(folder(), name);
  };
  const refused = async (args: string[], code: number, pattern: RegExp) => {
    const ran = await run(args);
    assert.match(ran.err, pattern);
    assert.equal(ran.code, code);
    assert.equal(ran.out, "");
    assert.equal(ran.err.trimEnd().split("\n").length, 1, ran.err);
  };

  it("prints help and version for every command", async () => {
    const overview = await run(["--help"]);
    assert.equal(overview.code, 0);
    const commands = [...overview.out.matchAll(/^ {2}latentkit (\w+)/gm)].map(([, command]) => command!);
    assert.ok(commands.includes("render") && commands.includes("serve"));
    for (const command of commands) {
      const help = await run([command, "--help"]);
      assert.equal(help.code, 0);
      assert.match(help.out, new RegExp(`^Usage: latentkit ${command}`));
      assert.deepEqual(await run(["help", command]), help);
      assert.deepEqual(await run([command, "--version"]), { code: 0, out: `${version}\n`, err: "" });
    }
    assert.deepEqual(await run(["--version"]), { code: 0, out: `${version}\n`, err: "" });
    assert.equal((await run([])).code, 2);
  });

  it("loads no command for help, and no service for what is refused", () => {
    const loadedBy = (...calls: string[][]) => {
      const program = `
        const { main } = await import(${JSON.stringify(pathToFileURL(join(root, "dist/cli/main.js")).href)});
        const print = () => {};
        const terminal = { out: print, err: print, isTerminal: false, columns: 80, color: false, env: {} };
        for (const call of ${JSON.stringify(calls)}) await main(call, terminal);
      `;
      const files = loadedFiles(program, join(folder(), "list")).join("\n");
      const names = [...files.matchAll(/\/dist\/((?:cli\/commands|service)\/[\w-]+)/g)].map(([, name]) => name!);
      return [...new Set(names)].sort();
    };
    assert.deepEqual(loadedBy(["--version"], ["--help"], ["serve", "--help"], ["render"], ["serve", "--prt", "1"]), []);
    assert.deepEqual(loadedBy(["nodes"], ["serve", "--port", "x"]), ["cli/commands/nodes", "cli/commands/serve"]);
  });

  it("has exactly the commands that the documents show", async () => {
    const commands = [...(await run(["--help"])).out.matchAll(/^ {2}latentkit (\w+)/gm)].map(([, command]) => command!);
    const files = ["README.md", ...readdirSync(join(root, "docs")).map((file) => join("docs", file))];
    const text = files.filter((file) => file.endsWith(".md")).map((file) => readFileSync(join(root, file), "utf8"));
    const shown = [...text.join("\n").matchAll(/(?:npx|`)\s?latentkit ([a-z]+)/g)].map(([, command]) => command!);
    assert.deepEqual([...new Set(shown)].sort(), commands.sort());
  });

  it("misuse: one sentence with a suggestion, exit code 2", async () => {
    await refused(["rendr", "g.json"], 2, /Unknown command "rendr"\. Did you mean render\?/);
    await refused(["g.json"], 2, /Unknown command "g\.json"\. Did you mean latentkit render g\.json\?/);
    await refused(["help", "rendr"], 2, /Unknown command "rendr"\. Did you mean render\?/);
    await refused(["render"], 2, /Usage: latentkit render GRAPH; latentkit render --help shows the options\./);
    await refused(
      ["render", "a.json", "red", "fox"],
      2,
      /; unexpected arguments "red" "fox"; quote values that contain spaces\./,
    );
    await refused(["render", "a.json", "--out"], 2, /^latentkit: --out: expected a value, received none\.\n$/);
    await refused(
      ["render", "a.json", "--set", "--json"],
      2,
      /--set: expected a value, received none; write one that begins with a dash as --set=-…\.\n$/,
    );
    await refused(["render", "a.json", "--json=x"], 2, /--json: expected no value, received one\.\n$/);
    await refused(["render", "a.json", "--sett", "x=1"], 2, /Unknown option --sett\. Did you mean --set\?/);
    await refused(["render", "a.json", "--seed", "5"], 2, /option --seed\. Did you mean --set seed=…\?/);
    await refused(["render", "a.json", "--prompt=x"], 2, /option --prompt\. Did you mean --set prompt=…\?/);
    await refused(["render", "a.json", "-o", "x"], 2, /option -o\. Did you mean --out\?/);
    await refused(["render", "a.json", "-n", "4"], 2, /option -n\. Did you mean --seeds\?/);
    await refused(["serve", "--listen", "::1"], 2, /option --listen\. Did you mean --host\?/);
    await refused(["render", "a.json", "--zzz"], 2, /option --zzz\. latentkit render --help shows the options\.\n$/);
    await refused(
      ["render", join(graphs, "if.json"), "--set", "choose"],
      2,
      /--set: expected KEY=VALUE, received "choose"/,
    );
    await refused(
      ["render", join(graphs, "if.json"), "--metadata", "some"],
      2,
      /--metadata: expected full, prompt, none/,
    );
    await refused(["render", join(folder(), "none.json")], 2, /does not exist/);
    const noise = readFileSync(join(root, "examples/noise.json"), "utf8");
    const unlisted = ["render", write("list.json", noise.replace('"karras"', '"karas"')), "--quiet"];
    const hint = /received "karas"\. Did you mean karras\? --set 3\.scheduler=… sets another scheduler\.\n$/;
    await refused(unlisted, 2, hint);
    await refused([...unlisted, "--set", "3.scheduler=x"], 2, /received "x"\.\n$/);
    await refused(["nodes", "ext latentNoisi"], 2, /Unknown node.*Did you mean "ext latentNoisy"\?/);
    await refused(["nodes", "Load checkpoint"], 2, /Unknown node.*Did you mean "CheckpointLoaderSimple"\?/);
    await refused(["inspect", join(folder(), "none.png")], 2, /not found/);
    await refused(
      ["inspect", join(graphs, "if.json")],
      2,
      /if\.json: Picture: expected the bytes of a PNG, .* file, received another file\.\n$/,
    );
    await refused(
      ["verify", join(graphs, "if.json")],
      2,
      /if\.json: Picture: expected the bytes of a PNG, .* file, received another file\.\n$/,
    );
    await refused(["constructor"], 2, /Unknown command/);
  });

  it("render: prints the files on stdout and progress on stderr", async () => {
    const args = ["render", join(graphs, "save-image-lazy.json"), "--out", folder()];
    const { code, out, err } = await run(args);
    assert.equal(code, 0);
    assert.equal(out, `${join(folder(), "save-image-lazy/64x64_0_00001.png")}\n`);
    assert.match(err, /^1 LoadImage: [\d.]+ ms\n2 ext saveImageLazy: [\d.]+ ms\n1 file in [\d.]+ s\n$/);
    const quiet = await run([...args, "--quiet", "--set", "2.filename_prefix=q", "--metadata", "none"]);
    assert.deepEqual([quiet.code, quiet.err], [0, ""]);
    const bar = await run(args, { isTerminal: true, color: true });
    assert.ok(bar.err.includes("\r\x1b[2K") && bar.err.includes("1/2 2 ext saveImageLazy"), bar.err);
    assert.ok(!(await run(args, { isTerminal: true })).err.includes("\x1b[3"));
  });

  it("render: warns once of an unfilled placeholder", async () => {
    const args = ["render", join(graphs, "latent-noisy.json"), "--out", folder()];
    const { code, err, out } = await run(args);
    assert.equal(code, 0);
    assert.equal(err.split("no value is given for {{scene}}").length, 2, err);
    assert.match(err, /^Warning: Node 1, input "positive": no value/m);
    assert.match(
      (await run([...args, "--json"])).out,
      /^\{"type": "warning", "nodeId": "1", "message": "Node 1, input/m,
    );
    const result = (await run([...args, "--json"])).out.trimEnd().split("\n").at(-1)!;
    const { warnings } = JSON.parse(result) as { warnings: string[] };
    assert.deepEqual([warnings.length, /no value is given for \{\{scene\}\}/.test(warnings[0]!)], [1, true]);
    assert.doesNotMatch((await run([...args, "--set", "1.positive=x"])).err, /Warning/);
    assert.equal(out.trimEnd().split("\n").length, 1);
  });

  it("render --json: prints one event a line and the result last", async () => {
    const args = ["render", join(graphs, "latent-noisy.json"), "--out", folder(), "--json"];
    const { code, out, err } = await run(args);
    assert.deepEqual([code, err], [0, ""]);
    const lines = out
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    assert.equal(lines[0]!.type, "run-start");
    assert.deepEqual([lines.at(-1)!.type, lines.at(-1)!.status], ["result", "success"]);
    const files = lines.at(-1)!.files as { path: string }[];
    assert.deepEqual(
      files.map(({ path }) => path),
      [join(folder(), "latent-noisy/gpu-stream_00001.png")],
    );
    assert.ok(out.length < 20_000, "tensors are named, not printed");
  });

  it("names a file that is not a graph; with --json also in the result", async () => {
    const bad = write("bad.json", '{\n "1": }');
    const sentence = `Graph ${bad}, line 2, column 7: expected a value, received "}".`;
    await refused(["render", bad], 2, /Graph .*bad\.json, line 2, column 7/);
    const { code, out, err } = await run(["render", bad, "--json"]);
    assert.deepEqual([code, err], [2, `latentkit: ${sentence}\n`]);
    const { type, status, files, error } = JSON.parse(out) as Record<string, unknown>;
    assert.deepEqual([type, status, files], ["result", "failed", []]);
    assert.deepEqual((error as Record<string, unknown>).message, sentence);
    const verdict = await run(["validate", bad, "--json"]);
    assert.equal(verdict.code, 2);
    assert.deepEqual((JSON.parse(verdict.out) as { error: { sentence: string } }).error.sentence, sentence);
    assert.equal((await run(["validate", bad])).out, `${bad} cannot run.\n${sentence}\n`);
    const wrong = write("wrong.json", { "1": { class_type: "ext iff", inputs: {} } });
    const refusal = JSON.parse((await run(["render", wrong, "--json"])).out) as { error: { code: string } };
    assert.equal(refusal.error.code, "graph.unknown-class");
  });

  it("render: takes --alias, --targets, --set and --input", async () => {
    const text = readFileSync(join(graphs, "save-image-lazy.json"), "utf8").replace(
      "ext saveImageLazy",
      "easy saveImageLazy",
    );
    const graph = write("old.json", text);
    await refused(["render", graph, "--out", folder()], 2, /easy saveImageLazy/);
    const args = ["render", graph, "--out", folder(), "--alias", "easy =ext ", "--input", join(graphs, "input")];
    const { code, out } = await run([...args, "--targets", "2", "--set", "1.image=night.png", "--quiet"]);
    assert.equal(code, 0);
    assert.match(out, /32x64_0_00001\.png/);
  });

  it("render: exit code 1 for a failed run, 3 for a bad configuration or missing key", async () => {
    const text = {
      "1": {
        class_type: "ext saveTextLazy",
        inputs: {
          text: "x",
          output_file_path: "t",
          file_name: "n",
          file_extension: "txt",
          overwrite: true,
        },
      },
    };
    const graph = write("text.json", text);
    write("t", "a file where a folder is wanted");
    const failed = await run(["render", graph, "--out", folder(), "--quiet"]);
    assert.equal(failed.code, 1, failed.err);
    assert.match(failed.err, /Node 1 \(ext saveTextLazy\)/);
    const config = write("bad.yaml", "output_dri: x");
    await refused(["render", graph, "--config", config], 3, /unknown key "output_dri"\. Did you mean "output_dir"\?/);
    const remote = ["render", join(graphs, "remote-image-api.json"), "--out", folder(), "--quiet"];
    assert.equal((await run(remote, { env: {} })).code, 3);
  });

  it("render: output folder from flag, environment or file, in this order", async () => {
    const config = write("c.json", { output_dir: "from-file" });
    const args = ["render", join(graphs, "save-image-lazy.json"), "--config", config, "--quiet"];
    assert.match((await run(args)).out, /from-file/);
    assert.match((await run(args, { env: { LATENTKIT_OUTPUT_DIR: join(folder(), "from-env") } })).out, /from-env/);
    assert.match((await run([...args, "--out", join(folder(), "from-flag")])).out, /from-flag/);
  });

  it("validate: says whose names were expected, what a placeholder is, and what the host cannot load", async () => {
    const graph = {
      1: { class_type: "CheckpointLoaderSimple", inputs: { ckpt_name: "mine.safetensors" } },
      2: { class_type: "CLIPTextEncode", inputs: { text: "a", clip: ["1", 1] } },
      3: {
        class_type: "KSampler",
        inputs: {
          seed: "{{seed}}",
          steps: ["x"],
          cfg: 7,
          sampler_name: "dpmpp_2m_karras",
          scheduler: "karras",
          denoise: 1,
          model: ["1", 0],
          positive: ["2", 0],
          negative: ["2", 0],
          latent_image: ["5", 0],
        },
      },
      4: { class_type: "VAELoader", inputs: { vae_name: "mine.safetensors" } },
      5: { class_type: "EmptyLatentImage", inputs: { width: 64, height: 64, batch_size: 1 } },
      6: { class_type: "VAEDecode", inputs: { samples: ["3", 0], vae: ["4", 0] } },
      7: { class_type: "PreviewImage", inputs: { images: ["6", 0] } },
    };
    const { code, out } = await run(["validate", write("unready.json", graph)]);
    assert.equal(code, 2);
    assert.match(out, /received "\{\{seed\}\}"\. It is a placeholder: render fills it with --set seed=VALUE\.\n/);
    assert.match(out, /"steps": expected a whole number from 1 to 10000 or a link \[node id, slot\]/);
    assert.match(out, /received "dpmpp_2m_karras"\. Did you mean "?dpmpp_2m"?\?/);
    assert.match(out, /^\S+ cannot run here: VAELoader \(node 4, host "preview" has no separate VAEs\)\.\n/);
    assert.match(
      out,
      /These names were checked against the preview host; use --models DIR to check them against your own files\.\n$/,
    );
  });

  it("validate: names node and input of an error, exit code 2", async () => {
    const good = await run(["validate", join(graphs, "if.json")]);
    assert.deepEqual([good.code, good.err], [0, ""]);
    assert.match(good.out, /can run and computes node 4\./);
    const graph = JSON.parse(readFileSync(join(graphs, "inject-noise-to-latent.json"), "utf8")) as Record<
      string,
      { inputs: Record<string, unknown> }
    >;
    graph["4"]!.inputs.strength = 300;
    graph["3"]!.inputs.smapler_name = "euler";
    const bad = write("bad.json", graph);
    const input = ["--input", join(graphs, "input")];
    const { code, out } = await run(["validate", bad, ...input]);
    assert.equal(code, 2);
    assert.match(out, /Node 4 \(ext injectNoiseToLatent\), input "strength": expected .*, received 300/);
    assert.match(out, /Warning: .*smapler_name.*sampler_name/);
    const json = JSON.parse((await run(["validate", bad, "--json", ...input])).out) as {
      ok: boolean;
      nodeErrors: Record<string, unknown>;
    };
    assert.equal(json.ok, false);
    assert.deepEqual(Object.keys(json.nodeErrors), ["4"]);
  });

  it("validate: refuses the input files that render refuses, with its sentences", async () => {
    const graph = join(graphs, "image-to-mask.json");
    const input = join(folder(), "input");
    mkdirSync(input);
    const errorOf = async (...args: string[]) => {
      const { code, out, err } = await run([...args, "--input", input]);
      assert.equal(code, 2, out + err);
      return `${out}${err}`.match(/Node \d+ \(LoadImage\), [^\n]*/)?.[0];
    };
    const name = (JSON.parse(readFileSync(graph, "utf8")) as { 1: { inputs: { image: string } } })[1].inputs.image;
    const missing = `Node 1 (LoadImage), input "image": expected a file in the input folder, received "${name}", which does not exist.`;
    const wrong = `Node 1 (LoadImage), input "image": expected a PNG, JPEG, WebP, AVIF, GIF, TIFF or BMP file, received "${name}", which is a PSD.`;
    for (const sentence of [missing, wrong]) {
      assert.equal(await errorOf("validate", graph), sentence);
      assert.equal(await errorOf("render", graph, "--out", folder(), "--quiet"), sentence);
      writeFileSync(join(input, name), Buffer.from("8BPS"));
    }
  });

  it("nodes: lists all, describes one, prints object_info", async () => {
    const list = await run(["nodes"]);
    assert.match(list.out, /^ext imageToMask +image, channel -> MASK$/m);
    const one = await run(["nodes", "ext latentNoisy"]);
    assert.match(one.out, /^ext latentNoisy {2}\(ext\/🚫 Deprecated\)$/m);
    assert.match(one.out, /seed +INT +default 0, from 0, to 18446744073709551615/);
    assert.match(one.out, /source +COMBO +CPU \| GPU/);
    const info = JSON.parse((await run(["nodes", "ext if", "--json"])).out) as Record<
      string,
      { output_name: string[] }
    >;
    assert.deepEqual(info["ext if"]!.output_name, ["?"]);
    assert.equal(
      Object.keys(JSON.parse((await run(["nodes", "--json"])).out) as object).length,
      list.out.trimEnd().split("\n").length,
    );
  });

  it("inspect: prints size and texts with every digit", async () => {
    const seed = "2.seed=18446744073709551614";
    await run(["render", join(graphs, "latent-noisy.json"), "--out", folder(), "--quiet", "--set", seed]);
    const image = join(folder(), filesIn(folder())[0]!);
    const { code, out } = await run(["inspect", image, "--graph"]);
    assert.equal(code, 0);
    assert.match(out, /: 64 x 64, RGB, 8 bits\n(?: {2}.*\n)*receipt:\n/);
    assert.match(out, /^prompt:\n\{\n/m);
    assert.match(out, /"seed": 18446744073709551614,/);
    assert.match(
      (await run(["inspect", image, "--json"])).out,
      /^\{.*"width": 64,.*"seed": 18446744073709551614,.*\}\n$/,
    );
    await refused(["inspect", write("broken.png", "not a picture")], 2, /PNG/);
  });

  it("inspect: has a blank between the name of each row and its value", async () => {
    const graph = join(root, "examples/text-to-image.json");
    await run(["render", graph, "--out", folder(), "--quiet", "--parameters", "--set", "steps=1"]);
    const { out } = await run(["inspect", join(folder(), filesIn(folder())[0]!)]);
    const rows = out.split("\n").slice(1, -1);
    assert.ok(
      rows.some((row) => row.startsWith("  settings  ")),
      out,
    );
    for (const row of rows) assert.match(row, /^ {2}(?:[a-z ]{9} | {10})\S/);
  });

  it("doctor: accepts this installation, reports a folder that cannot be written", async () => {
    const { code, out } = await run(["doctor", "--out", join(folder(), "new/deep")]);
    assert.equal(code, 0, out);
    for (const name of [
      "latentkit",
      "node",
      "platform",
      "native core",
      "instructions",
      "threads",
      "CUDA",
      "output folder",
      "self-test",
    ]) {
      assert.match(out, new RegExp(`^ok +${name} `, "m"));
    }
    assert.deepEqual(filesIn(folder()), []);
    const file = write("file", "");
    const bad = await run(["doctor", "--out", join(file, "below"), "--json"]);
    assert.equal(bad.code, 1);
    assert.equal((JSON.parse(bad.out) as { ok: boolean }).ok, false);
  });

  it("doctor: reports a variable with an invalid value @long", async () => {
    for (const [name, expected] of [
      ["LATENTKIT_ISA", "avx512, avx2 or baseline"],
      ["LATENTKIT_THREADS", "a whole number from 1 to 256"],
      ["LATENTKIT_DEVICE", "auto, cpu or cuda:N"],
    ] as const) {
      const { code, stdout } = await latentkit(["doctor", "--out", folder()], { env: { [name]: "bogus" } });
      const sentence = `BAD  native core    ${name}: expected ${expected}, received "bogus".`;
      assert.deepEqual([code, stdout.includes(sentence)], [1, true], stdout);
    }
  });

  it("every command warns of an unknown variable @long", async () => {
    const env = { LATENTKIT_OUTPUT_DIRR: folder(), LATENTKIT_ISA: "baseline" };
    const warning =
      "Warning: Environment variable LATENTKIT_OUTPUT_DIRR sets nothing. Did you mean LATENTKIT_OUTPUT_DIR?\n";
    for (const args of [["nodes"], ["validate", join(graphs, "if.json")], ["doctor", "--out", folder()]]) {
      assert.deepEqual([(await run(args, { env })).err, (await run(args)).err], [warning, ""], args[0]);
    }
    const args = ["render", join(graphs, "save-image-lazy.json"), "--out", folder(), "--quiet"];
    assert.equal((await run(args, { env })).err, warning);
  });

  it("prints a stack only with LATENTKIT_DEBUG=1", async () => {
    const args = ["render", join(folder(), "none.json")];
    assert.match((await run(args, { env: { LATENTKIT_DEBUG: "1" } })).err, /\n +at /);
  });
});

describe("latentkit as a process", () => {
  const folder = temporaryFolder();

  it("exits 130 at Ctrl-C and leaves no partial file", async () => {
    // every picture waits for the last, so that the signal comes in the middle
    const nodes = Object.fromEntries(
      Array.from({ length: 400 }, (_, i) => [
        String(i),
        { class_type: "SaveImage", inputs: { images: ["load", 0], filename_prefix: `p${i}` } },
      ]),
    );
    const graph = join(folder(), "many.json");
    writeFileSync(
      graph,
      JSON.stringify({ load: { class_type: "LoadImage", inputs: { image: "dawn.png" } }, ...nodes }),
    );
    const args = ["render", graph, "--out", join(folder(), "out"), "--input", join(root, "examples/input"), "--json"];
    let isSent = false;
    const ran = await latentkit(args, {
      onStdout: (text, kill) => {
        if (isSent || !text.includes('"node-done"')) return;
        isSent = true;
        kill("SIGINT");
      },
    });
    assert.equal(ran.code, 130, ran.stderr);
    assert.match(ran.stderr, /Interrupted/);
    const files = filesIn(join(folder(), "out"));
    assert.ok(files.length < 400);
    assert.deepEqual(
      files.filter((file) => !/^p\d+_00001_\.png$/.test(file)),
      [],
    );
  });

  it("reports output that cannot be written in one sentence", async function () {
    if (!existsSync("/dev/full")) skip(this, "there is no /dev/full");
    const { spawnSync } = await import("node:child_process");
    const full = openSync("/dev/full", "w");
    const child = spawnSync(process.execPath, [join(root, "bin/latentkit.mjs"), "nodes", "--json"], {
      stdio: ["ignore", full, "pipe"],
      encoding: "utf8",
    });
    closeSync(full);
    assert.deepEqual([child.status, child.stderr], [1, "latentkit: Cannot write the output (ENOSPC).\n"]);
  });

  it("keeps its exit code if stderr cannot be written @long", async function () {
    if (!existsSync("/dev/full")) skip(this, "there is no /dev/full");
    const { spawnSync } = await import("node:child_process");
    const full = openSync("/dev/full", "w");
    const graph = join(graphs, "save-image-lazy.json");
    for (const more of [[], ["--sweep", "2.filename_prefix=a,b"]]) {
      const args = [join(root, "bin/latentkit.mjs"), "render", graph, "--out", join(folder(), "out"), ...more];
      const child = spawnSync(process.execPath, args, { stdio: ["ignore", "pipe", full], encoding: "utf8" });
      assert.equal(child.status, 0, child.stdout);
      assert.equal(child.stdout.trimEnd().split("\n").length, more.length || 1);
    }
    closeSync(full);
  });

  it("ends quietly when its reader leaves", async () => {
    const { spawnSync } = await import("node:child_process");
    const bin = join(root, "bin/latentkit.mjs");
    const command = `"${process.execPath}" "${bin}" nodes --json | head -c 10 >/dev/null; echo "\${PIPESTATUS[0]}"`;
    const { stdout, stderr } = spawnSync("bash", ["-c", command], { encoding: "utf8" });
    assert.equal(stdout.trim(), "0");
    assert.equal(stderr, "");
  });
});
