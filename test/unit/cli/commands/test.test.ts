import assert from "node:assert/strict";
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { main } from "#src/cli/main.js";
import { filesIn, temporaryFolder } from "../../../helpers/folders.js";

const solid = (value: unknown) => ({
  "1": { class_type: "SolidMask", inputs: { value, width: 8, height: 8 } },
  "2": { class_type: "MaskToImage", inputs: { mask: ["1", 0] } },
  "3": { class_type: "SaveImage", inputs: { images: ["2", 0], filename_prefix: "a" } },
});

describe("latentkit test", () => {
  const folder = temporaryFolder();
  const write = (name: string, content: unknown) =>
    writeFileSync(join(folder(), name), typeof content === "string" ? content : JSON.stringify(content));
  /** Runs the command in this process; paths are those below the folder. */
  const test = async (args: string[], CI = "") => {
    let [stdout, stderr] = ["", ""];
    const terminal = {
      out: (text: string) => {
        stdout += text.replaceAll(`${folder()}/`, "");
      },
      err: (text: string) => {
        stderr += text.replaceAll(`${folder()}/`, "");
      },
      isTerminal: false,
      columns: 80,
      color: false,
      env: { CI },
    };
    return { code: await main(["test", ...args], terminal), stdout, stderr };
  };

  it("follows no link out of the folder, neither for snapshots nor for differences", async () => {
    mkdirSync(join(folder(), "graphs"));
    mkdirSync(join(folder(), "elsewhere"));
    write("graphs/a.json", solid(0.25));
    write("elsewhere/old.json", { outputs: [] });
    for (const name of ["__snapshots__", "__differences__"]) {
      symlinkSync(join(folder(), "elsewhere"), join(folder(), "graphs", name));
      for (const args of [["--update", join(folder(), "graphs")], [join(folder(), "graphs/a.json")]]) {
        const { code, stdout, stderr } = await test(args);
        assert.ok(code !== 0, stderr);
        assert.match(stdout + stderr, / is a link that leaves .*graphs; expected a folder inside it/);
      }
      rmSync(join(folder(), "graphs", name));
    }
    assert.deepEqual(filesIn(join(folder(), "elsewhere")), ["old.json"]);
    // one that stays inside
    mkdirSync(join(folder(), "graphs/inside"));
    symlinkSync("inside", join(folder(), "graphs/__snapshots__"));
    assert.equal((await test(["--update", join(folder(), "graphs")])).code, 0);
  });

  it("writes, compares, shows a difference, updates and clears away", async () => {
    write("a.json", solid(0.25));
    write("b.json", solid(0.5));
    write("package.json", { name: "no-graph" });
    const ci = await test([folder()], "true");
    assert.equal(ci.code, 1);
    assert.match(ci.stdout, /^missing a\.json: no snapshot; /);
    const written = await test([folder()]);
    assert.deepEqual([written.code, written.stdout], [0, "written a.json\nwritten b.json\n"]);
    assert.equal(written.stderr, "2 graphs: 2 written.\n");
    const equal = await test([`${folder()}/`], "true");
    assert.deepEqual([equal.code, equal.stdout], [0, "equal a.json\nequal b.json\n"]);
    write("a.json", solid(0.75));
    rmSync(join(folder(), "b.json"));
    const different = await test([folder()]);
    assert.equal(different.code, 1);
    const words = "picture 1 of node 3: 64 of 64 pixels differ, by up to 128 of 255";
    assert.equal(different.stdout, `different a.json: ${words}; see __differences__/a-1.png\n`);
    assert.match(
      different.stderr,
      /The snapshot __snapshots__\/b\.json no longer has a graph; remove it with --update\./,
    );
    const updated = await test([folder(), "--update"]);
    assert.deepEqual([updated.code, updated.stdout], [0, "updated a.json\n"]);
    assert.deepEqual(filesIn(join(folder(), "__snapshots__")).sort(), ["a-1.png", "a.json"]);
    assert.equal((await test([join(folder(), "a.json")], "1")).code, 0);
  });

  it("one graph that fails leaves the others to be tested; values go where their keys are", async () => {
    mkdirSync(join(folder(), "graphs"));
    write("graphs/broken.json", '{ "1": { "class_type": ');
    write("graphs/fill.json", solid("{{value}}"));
    write("graphs/plain.json", solid(1));
    const ran = await test([join(folder(), "graphs"), "--set", "value=0.5", "--json"]);
    assert.equal(ran.code, 1);
    const lines = ran.stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    assert.deepEqual(
      lines.map(({ graph, status }) => [graph, status]),
      [
        ["graphs/broken.json", "failed"],
        ["graphs/fill.json", "written"],
        ["graphs/plain.json", "written"],
      ],
    );
    assert.match(String((lines[0]!.messages as string[])[0]), /^Graph graphs\/broken\.json/);
    const { outputs } = JSON.parse(readFileSync(join(folder(), "graphs/__snapshots__/fill.json"), "utf8"));
    assert.equal(outputs[0].width, 8);
  });

  it("refuses wrong arguments in one sentence", async () => {
    write("a.json", solid(1));
    mkdirSync(join(folder(), "empty"));
    for (const [args, pattern] of [
      [[join(folder(), "none")], /none does not exist\./],
      [[join(folder(), "empty")], /empty: no graphs \(\*\.json\) in this folder\./],
      [[folder(), "--set", "colour=red"], /--set: no graph has the key "colour"\./],
      [[folder(), "--tolerance", "256"], /--tolerance: expected 0 to 255, received "256"\./],
    ] as const) {
      const { code, stderr, stdout } = await test([...args]);
      assert.deepEqual([code, stdout], [2, ""]);
      assert.match(stderr, pattern);
    }
    assert.deepEqual(filesIn(folder()).sort(), ["a.json"]);
  });
});
