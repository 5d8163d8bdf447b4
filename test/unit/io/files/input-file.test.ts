import assert from "node:assert/strict";
import { utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInputHashes } from "#src/io/files/input-file.js";
import { refuses } from "../../../helpers/errors.js";
import { sha256, temporaryFolder } from "../../../helpers/folders.js";

describe("createInputHashes", () => {
  const folder = temporaryFolder();
  const write = (content: string, seconds: number) => {
    const path = join(folder(), "a.png");
    writeFileSync(path, content);
    utimesSync(path, seconds, seconds);
    return sha256(Buffer.from(content));
  };

  it("reads a file again only if its size or its time differs", async () => {
    const hashOf = createInputHashes(folder());
    const first = write("one", 1000);
    assert.equal(await hashOf("a.png"), first);
    write("two", 1000);
    assert.equal(await hashOf("a.png"), first);
    assert.equal(await hashOf("a.png"), await hashOf("a.png [input]"));
    const later = write("two", 2000);
    assert.equal(await hashOf("a.png"), later);
    const longer = write("three", 2000);
    assert.equal(await hashOf("a.png"), longer);
  });

  it("fails for a missing or outside file, and reads it once it exists", async () => {
    const hashOf = createInputHashes(folder());
    await refuses(() => hashOf("a.png"), "file.not-found", /a\.png/);
    await refuses(
      () => hashOf("b/a.png [output]"),
      "file.not-found",
      /received "b\/a\.png \[output\]", a file of ComfyUI's output folder: copy it to the input folder, and name it without " \[output\]"\.$/,
    );
    await refuses(() => hashOf("../a.png"), "path.outside", /inside the input folder/);
    const hash = write("one", 1000);
    assert.equal(await hashOf("a.png"), hash);
  });
});
