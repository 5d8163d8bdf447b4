import assert from "node:assert/strict";
import { mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { join, sep } from "node:path";
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

  it("reads folders of Windows, unless a file has the backslash in its name", async () => {
    const hashOf = createInputHashes(folder());
    mkdirSync(join(folder(), "sub"));
    writeFileSync(join(folder(), "sub/a.png"), "one");
    assert.equal(await hashOf("sub\\a.png"), sha256(Buffer.from("one")));
    await refuses(() => hashOf("sub\\..\\..\\a.png"), "path.outside");
    await refuses(() => hashOf("sub\\aa.png"), "file.not-found", /Did you mean "a\.png"\?$/);
    writeFileSync(join(folder(), "sub\\a.png"), "two");
    const own = sep === "/" ? "two" : "one";
    assert.equal(await hashOf("sub\\a.png [input]"), sha256(Buffer.from(own)));
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
