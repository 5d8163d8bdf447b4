import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ERROR_CODES } from "#src/base/errors.js";
import { root } from "../../helpers/folders.js";

describe("error codes", () => {
  it("of the table are those that the package uses", () => {
    const src = join(root, "src");
    const files = readdirSync(src, { recursive: true, encoding: "utf8" }).filter(
      (file) => /\.tsx?$/.test(file) && !file.endsWith("base/errors.ts"),
    );
    const text = files.map((file) => readFileSync(join(src, file), "utf8")).join("\n");
    const unused = Object.keys(ERROR_CODES).filter((code) => !text.includes(`"${code}"`));
    assert.deepEqual(unused, []);
  });
});
