import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../../../helpers/folders.js";
import { latentkit } from "../../../helpers/process/cli.js";

describe("latentkit schema", () => {
  const folder = temporaryFolder();

  it("prints the schema with every digit; a wrong graph is one sentence", async () => {
    const path = join(folder(), "graph.json");
    const inputs = '{ "value": 18446744073709551615 }';
    writeFileSync(path, `{ "1": { "class_type": "Odd", "inputs": ${inputs} } }`);
    const { code, stdout } = await latentkit(["schema", path]);
    assert.equal(code, 0);
    assert.match(stdout, /"1\.value": \{[^}]*"default": 18446744073709551615\n/);
    const missing = await latentkit(["schema", join(folder(), "none.json")]);
    assert.equal(missing.code, 2);
    assert.match(missing.stderr, /^latentkit: Graph .*none\.json does not exist\.\n$/);
  });

  it("escapes what controls a terminal, hides or turns text", async () => {
    const path = join(folder(), "hostile.json");
    const inputs = { text: "a\u009b31mb\u202ec\u200bd\u{e0041}e\ud800", filename_prefix: "x\u2028\u0085" };
    writeFileSync(path, JSON.stringify({ 1: { class_type: "CLIPTextEncode", inputs } }));
    const { code, stdout } = await latentkit(["schema", path]);
    assert.equal(code, 0);
    assert.match(stdout, /"a\\u009b31mb\\u202ec\\u200bd\\udb40\\udc41e\\ud800"/);
    assert.doesNotMatch(stdout, /[^\P{Cc}\n]|[\p{Cf}\p{Zl}\p{Zp}]/u);
    JSON.parse(stdout);
  });
});
