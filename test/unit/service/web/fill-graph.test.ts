import assert from "node:assert/strict";
import { filledJob } from "#src/service/web/fill-graph.js";
import { refuses } from "../../../helpers/errors.js";

const graph = `{
  "2": { "class_type": "CLIPTextEncode", "inputs": { "text": "a {{animal}}", "clip": ["1", 1] } },
  "1": { "class_type": "KSampler", "inputs": { "seed": 18446744073709551615, "cfg": 1.50, "sampler_name": "euler" } }
}`;
const fill = (values: string, source = graph) => filledJob(Buffer.from(`{"graph":${source},"values":${values}}`));

describe("filledJob", () => {
  it("puts values in, and keeps every digit and the order of all others", () => {
    const values = '{ "animal": "red fox", "1.cfg": "7.5" }';
    assert.equal(
      fill(values),
      '{"workflow": {"2": {"class_type": "CLIPTextEncode", "inputs": {"text": "a red fox", "clip": ["1", 1]}}, ' +
        '"1": {"class_type": "KSampler", "inputs": {"seed": 18446744073709551615, "cfg": 7.5, "sampler_name": "euler"}}}}',
    );
    assert.match(fill('{ "animal": "x", "1.seed": "18446744073709551614" }'), /"seed": 18446744073709551614,/);
  });

  it("refuses values outside the graph's schema, which could become links", async () => {
    const cases: [string, RegExp][] = [
      ["{}", /needs a value for \{\{animal\}\}/],
      ['{ "animal": ["1", 0] }', /property "animal": expected/],
      ['{ "animal": "x", "1.seed": ["2", 0] }', /property "1.seed": expected/],
      ['{ "animal": "x", "1.sampler_name": "eular" }', /euler/],
    ];
    for (const [values, message] of cases) await refuses(async () => fill(values), "usage.invalid", message);
  });

  it("refuses anything but a graph and values", async () => {
    for (const body of ["7", "[]", "{}", '{"graph":{},"values":[]}', '{"graph":[],"values":{}}']) {
      await refuses(async () => filledJob(Buffer.from(body)), "usage.invalid", /expected an object with the objects/);
    }
    await refuses(async () => filledJob(Buffer.from([0x7b, 0xff])), "usage.invalid", /expected UTF-8/);
    await refuses(async () => fill("{}", '{"1":7}'), "graph.invalid");
  });
});
