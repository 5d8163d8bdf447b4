import assert from "node:assert/strict";
import { readYaml } from "#src/io/yaml.js";

const MIB = 2 ** 20;
const times = (text: string) => text.repeat(Math.ceil(MIB / text.length));

/** Texts of 1 MiB at which the package takes minutes, or ends the process. */
const HOSTILE: Readonly<Record<string, string>> = {
  "open lists": times("["),
  "open objects": times("{"),
  "open objects with keys": times("{a: "),
  "closed lists": "[".repeat(MIB / 2) + "]".repeat(MIB / 2),
  "open lists by line": times("[\n"),
  "block lists on a line": times("- "),
  "keys on a line": times("? "),
  quotes: times('"'),
  colons: times(": "),
  anchors: times("&a "),
  tags: times("!a "),
  aliases: times("*a "),
  "closing brackets": times("]"),
  "levels by indentation": Array.from({ length: 1400 }, (_, i) => `${" ".repeat(i)}a:`).join("\n"),
  "a hundred thousand keys": Array.from({ length: 100_000 }, (_, i) => `k${i}: 1`).join("\n"),
};

describe("readYaml", () => {
  for (const [what, text] of Object.entries(HOSTILE)) {
    it(`refuses ${what} before they cost anything`, () => {
      assert.throws(
        () => readYaml(text, { maxAliasCount: 50 }),
        /^Error: the text (?:has more than \d+ tokens|is nested deeper than \d+ levels)/,
      );
    });
  }

  it("reads what people write", () => {
    const lists = `${"[".repeat(60)}1${"]".repeat(60)}`;
    assert.deepEqual(readYaml(`a: ${lists}`, { maxAliasCount: 50 }), { a: JSON.parse(lists) });
    const text = `prompt: "[[[[ ${"[".repeat(1000)}"\nlines: |\n  a\n${" ".repeat(300)}deep\nlist:\n${"  - {a: [1]}\n".repeat(500)}`;
    const read = readYaml(text, { maxAliasCount: 50 }) as { list: unknown[] };
    assert.equal(read.list.length, 500);
  });
});
