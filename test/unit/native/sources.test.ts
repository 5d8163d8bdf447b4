import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { skip } from "../../helpers/skip.js";

describe("bindings.gyp", () => {
  it("describes the targets of CMakeLists.txt", function () {
    if (process.platform !== "linux") skip(this, "the targets are read as they are on Linux");
    const check = spawnSync(process.execPath, ["scripts/bindings-gyp.mjs", "--check"], { encoding: "utf8" });
    assert.equal(check.status, 0, check.stderr);
  });
});
