import assert from "node:assert/strict";
import { createGenerator } from "latentkit";
import { placeholderKeys, replacePlaceholders, wholePlaceholder } from "#src/render/fill/placeholders.js";

/** Placeholders by an expression that takes cubic time: good enough for short texts. */
const DEFINITION = /\{\{\s*([^{}]+?)\s*\}\}/g;
const WHOLE = /^\{\{\s*([^{}]+?)\s*\}\}$/;
const ALPHABET = ["{", "{", "{{", "}", "}", "}}", " ", "a", "b", "\n", "\t", "\u00a0", "\u0085", "\u2003", "\ufeff"];

describe("placeholders", () => {
  it("are those of the definition in random texts", () => {
    const random = createGenerator({ seed: 5n });
    const draws = random.randn([60_000, 10]).data;
    let matches = 0;
    for (let at = 0; at < draws.length; at += 10) {
      const length = 1 + (Math.abs(Math.round(draws[at]! * 7)) % 9);
      const pieces = draws.slice(at + 1, at + 1 + length);
      const text = Array.from(pieces, (draw) => ALPHABET[Math.abs(Math.round(draw * 1e5)) % ALPHABET.length]).join("");
      const keys = [...text.matchAll(DEFINITION)].map(([, key]) => key);
      matches += keys.length;
      assert.deepEqual(placeholderKeys(text), keys, JSON.stringify(text));
      assert.equal(wholePlaceholder(text), WHOLE.exec(text)?.[1], JSON.stringify(text));
      const mark = (all: string, key: string) => `<${all}|${key}>`;
      assert.equal(replacePlaceholders(text, mark), text.replace(DEFINITION, mark), JSON.stringify(text));
    }
    assert.ok(matches > 1000, `${matches} placeholders`);
  });

  it("are read without the blanks around them; the last of blanks alone is a key", () => {
    assert.deepEqual(placeholderKeys("{{a}} {{ b c }} {{{d}}} {{}} {{\t }} {{e}"), ["a", "b c", "d", " "]);
    assert.equal(wholePlaceholder("{{ a }}"), "a");
    for (const text of ["{{a}}{{b}}", "{{}}", "{{}", "x{{a}}", "{{{a}}}"])
      assert.equal(wholePlaceholder(text), undefined);
  });
});
