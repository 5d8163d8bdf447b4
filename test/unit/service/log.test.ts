import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { createLogger } from "latentkit/service";

describe("logger", () => {
  it("never prints a token header", () => {
    const destination = new PassThrough();
    const log = createLogger({ destination });
    const headers = { authorization: "Bearer s3cret", "x-compat-token": "s3cret", "x-service-hook-token": "s3cret" };
    log.info(headers, "a");
    log.info({ headers }, "b");
    log.info({ req: { headers } }, "c");
    log.info({ anything: headers }, "d");
    const text = String(destination.read());
    assert.equal(text.trim().split("\n").length, 4);
    assert.doesNotMatch(text, /s3cret/);
    assert.equal(text.match(/\[redacted\]/g)?.length, 12);
  });

  it("writes one line of JSON per message, whatever it contains", () => {
    const destination = new PassThrough();
    createLogger({ destination }).info({ path: 'a"\n{"level":50}' }, "line\nbreak");
    const lines = String(destination.read()).trim().split("\n");
    assert.equal(lines.length, 1);
    assert.equal(JSON.parse(lines[0]!).msg, "line\nbreak");
  });
});
