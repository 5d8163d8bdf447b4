import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { LatentkitError, render } from "latentkit";
import { validPaths } from "#src/nodes/output-inputs.js";
import { temporaryFolder } from "../../helpers/folders.js";

describe("validPaths", () => {
  it("returns the fault of each input, and leaves other types to the type check", () => {
    assert.equal(validPaths({ path: "a/b" }, { name: "c" }), true);
    assert.equal(validPaths({ path: 5 }, { name: undefined }), true);
    assert.deepEqual(validPaths({ path: "../a" }, { name: "b/c" }), {
      path: 'expected a path inside the output folder, received "../a"',
      name: 'expected a file name without folders, received "b/c"',
    });
  });
});

describe("graphs that write outside the output folder", () => {
  const folder = temporaryFolder();
  const text = (inputs: object) => ({
    class_type: "ext saveTextLazy",
    inputs: { text: "a", output_file_path: "t", file_name: "f", file_extension: "txt", overwrite: true, ...inputs },
  });

  it("are refused before any node has written anything", async () => {
    const graph = { 1: text({}), 2: text({ text: ["1", 0], file_name: "../f" }) };
    await assert.rejects(
      render(graph, { outputDir: folder(), targets: ["2"] }),
      (error: unknown) =>
        error instanceof LatentkitError &&
        /^Node 2 \(ext saveTextLazy\), input "file_name": expected .*, received "\.\.\/f"\.$/.test(error.message),
    );
    assert.deepEqual(readdirSync(folder()), []);
  });

  it("name the input also where the path comes through a link", async () => {
    const shown = { class_type: "ext showAnythingLazy", inputs: { anything: "../f" } };
    const { status, error } = await render({ 1: shown, 2: text({ file_name: ["1", 0] }) }, { outputDir: folder() });
    assert.equal(status, "failed");
    assert.match(error!.message, /^Node 2 \(ext saveTextLazy\), input "file_name": expected .*, received "\.\.\/f/);
    assert.deepEqual(readdirSync(folder()), []);
  });
});
