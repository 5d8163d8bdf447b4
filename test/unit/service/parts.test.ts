import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadAgent } from "#src/service/parts.js";
import { refuses } from "../../helpers/errors.js";
import { temporaryFolder } from "../../helpers/folders.js";

describe("loadAgent", () => {
  const folder = temporaryFolder();
  const write = (name: string, text: string) => {
    writeFileSync(join(folder(), name), text);
    return join(folder(), name);
  };

  it("returns the default export", async () => {
    const agent = await loadAgent(write("a b#c.mjs", "export default async ({ message }) => ({ response: message });"));
    const run = { id: "1", sessionKey: "s", message: "hello", name: null };
    const context = { signal: new AbortController().signal, emit: () => {}, addFile: () => ({ name: "", url: "" }) };
    assert.deepEqual(await agent(run, context), { response: "hello" });
  });

  it("reports what is wrong with the file", async () => {
    await refuses(loadAgent(join(folder(), "none.mjs")), "config.invalid", /none\.mjs: the file does not exist/);
    await refuses(loadAgent(write("s.mjs", "not javascript")), "config.invalid", /s\.mjs: it cannot be loaded/);
    await refuses(loadAgent(write("t.mjs", "throw new Error('no key');")), "config.invalid", /no key/);
    await refuses(loadAgent(write("u.mjs", "export const agent = 1;")), "config.invalid", /received none/);
    await refuses(loadAgent(write("v.mjs", "export default { run() {} };")), "config.invalid", /received an object/);
  });
});
