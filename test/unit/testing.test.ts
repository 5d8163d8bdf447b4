import { AssertionError } from "node:assert";
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expectRender, type MatcherContext, type MatchRenderOptions, matchers } from "latentkit/testing";
import { refuses } from "../helpers/errors.js";
import { filesIn, temporaryFolder } from "../helpers/folders.js";
import { makeProject } from "../helpers/process/docs.js";

const graph = (value: unknown) => ({
  "1": { class_type: "SolidMask", inputs: { value, width: 8, height: 8 } },
  "2": { class_type: "MaskToImage", inputs: { mask: ["1", 0] } },
  "3": { class_type: "SaveImage", inputs: { images: ["2", 0], filename_prefix: "a" } },
});

describe("latentkit/testing", () => {
  const folder = temporaryFolder();
  const { CI, LATENTKIT_UPDATE_SNAPSHOTS } = process.env;
  const set = (name: string, value: string | undefined) => {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  };
  beforeEach(() => {
    set("CI", undefined);
    set("LATENTKIT_UPDATE_SNAPSHOTS", undefined);
  });
  afterEach(() => {
    set("CI", CI);
    set("LATENTKIT_UPDATE_SNAPSHOTS", LATENTKIT_UPDATE_SNAPSHOTS);
  });

  describe("expectRender", () => {
    it("writes a snapshot, then compares with it", async () => {
      const snapshot = join(folder(), "snapshots/one");
      await expectRender(graph(0.5), { snapshot });
      assert.deepEqual(filesIn(folder()).sort(), ["snapshots/one-1.png", "snapshots/one.json"]);
      await expectRender(graph("{{value}}"), { snapshot: pathToFileURL(snapshot), set: { value: 0.5 } });
      const failed: unknown = await expectRender(graph(0.6), { snapshot }).catch((error: unknown) => error);
      assert.ok(failed instanceof AssertionError);
      assert.equal(
        failed.message,
        `The graph differs from the snapshot ${snapshot}.json:\n` +
          "  picture 1 of node 3: 64 of 64 pixels differ, by up to 26 of 255\n" +
          `  see ${join(folder(), "__differences__/one-1.png")}`,
      );
      await expectRender(graph(0.6), { snapshot, tolerance: 26 });
      await expectRender(graph(0.6), { snapshot, update: true });
      await expectRender(graph(0.6), { snapshot });
      set("LATENTKIT_UPDATE_SNAPSHOTS", "1");
      await expectRender(graph(0.7), { snapshot });
    });

    it("fails in CI if the snapshot is missing", async () => {
      set("CI", "true");
      await assert.rejects(
        expectRender(graph(0.5), { snapshot: join(folder(), "one") }),
        /missing, and CI does not create it/,
      );
      assert.deepEqual(filesIn(folder()), []);
    });

    it("refuses wrong options and graphs as render does", async () => {
      const snapshot = join(folder(), "one");
      await refuses(expectRender(graph(1), {} as { snapshot: string }), "usage.invalid", /snapshot: expected a path/);
      await refuses(expectRender(graph(1), { snapshot, outputDir: "x" } as { snapshot: string }), "usage.invalid");
      await refuses(expectRender(graph(1), { snapshot, tolerance: 256 }), "usage.invalid", /tolerance: expected/);
      await refuses(expectRender(graph(7), { snapshot }), /./, /SolidMask.*value/);
    });
  });

  describe("toMatchRender", () => {
    const match = (context: Omit<MatcherContext, "testPath">, made: unknown, options?: MatchRenderOptions) =>
      matchers.toMatchRender.call({ testPath: join(folder(), "portrait.test.ts"), ...context }, made, options);

    it("names the snapshot after file and test, and follows the runner's own snapshots", async () => {
      const test = { currentTestName: "portrait > paints a fox" };
      const none = { ...test, snapshotState: { _updateSnapshot: "none" } };
      const missing = await match(none, graph(0.5));
      assert.equal(missing.pass, false);
      assert.match(missing.message(), /missing/);
      assert.equal((await match({ ...test, snapshotState: { _updateSnapshot: "new" } }, graph(0.5))).pass, true);
      assert.ok(existsSync(join(folder(), "__snapshots__/portrait-portrait-paints-a-fox.json")));
      assert.equal((await match(none, graph(0.5))).pass, true);
      const different = await match(none, graph(0.6));
      assert.equal(different.pass, false);
      assert.match(different.message(), /__differences__/);
      assert.equal((await match({ ...test, snapshotState: { _updateSnapshot: "all" } }, graph(0.6))).pass, true);
      assert.equal((await match(none, graph(0.6))).pass, true);
    });

    it("with not: writes nothing, and says what was expected", async () => {
      const test = { currentTestName: "x", isNot: true };
      assert.equal((await match(test, graph(0.5))).pass, false);
      assert.deepEqual(filesIn(folder()), []);
      await match({ currentTestName: "x" }, graph(0.5));
      const same = await match(test, graph(0.5));
      assert.equal(same.pass, true);
      assert.match(same.message(), /was expected to differ/);
    });

    it("keeps names apart that a file cannot hold", async () => {
      for (const name of ["描く", "描かない", "../up", "x".repeat(200), "x".repeat(201), "Up"]) {
        await match({ currentTestName: "t" }, graph(0.5), { name });
      }
      const names = filesIn(join(folder(), "__snapshots__")).filter((file) => file.endsWith(".json"));
      assert.equal(names.length, 5);
      assert.ok(
        names.every((name) => /^portrait-[a-z0-9-]{1,100}\.json$/.test(name)),
        names.join(),
      );
    });

    it("refuses anything but a graph, and a call outside of a test", async () => {
      await refuses(match({ currentTestName: "x" }, 7), "usage.invalid", /expected a graph .* received 7/);
      await refuses(match({}, graph(1)), "usage.invalid", /within a test/);
    });
  });

  it("vitest runs the matcher, fails on another pixel, and updates @long", () => {
    makeProject(folder());
    writeFileSync(join(folder(), "package.json"), '{ "type": "module" }');
    const write = (value: number) =>
      writeFileSync(
        join(folder(), "mask.test.js"),
        `import { expect, test } from "vitest";
import { matchers } from "latentkit/testing";
expect.extend(matchers);
const graph = ${JSON.stringify(graph(value))};
test("paints a mask", () => expect(graph).toMatchRender());
test("not another one", () => expect(graph).not.toMatchRender({ name: "paints a mask", set: { "1.value": 0.1 } }));
`,
      );
    const vitest = (args: string[], CI = "") => {
      const program = join(folder(), "node_modules/.bin/vitest");
      const env = { ...process.env, CI, NO_COLOR: "1" };
      const { status, stdout, stderr } = spawnSync(program, ["run", ...args], { cwd: folder(), env, encoding: "utf8" });
      return { status, text: stdout + stderr };
    };
    write(0.5);
    const missing = vitest([], "true");
    assert.equal(missing.status, 1, missing.text);
    assert.match(missing.text, /mask-paints-a-mask\.json is missing, and CI does not create it/);
    const written = vitest([]);
    assert.equal(written.status, 0, written.text);
    assert.ok(existsSync(join(folder(), "__snapshots__/mask-paints-a-mask-1.png")));
    assert.equal(vitest([], "true").status, 0);
    write(0.502);
    const different = vitest([]);
    assert.equal(different.status, 1);
    assert.match(different.text, /picture 1 of node 3: 64 of 64 pixels differ, by up to 1 of 255/);
    assert.ok(existsSync(join(folder(), "__differences__/mask-paints-a-mask-1.png")));
    assert.equal(vitest(["-u"]).status, 0);
    assert.equal(vitest([], "true").status, 0);
    rmSync(join(folder(), "node_modules"), { recursive: true });
  });
});
