import assert from "node:assert/strict";
import { escapeControls, escapeWithinLines, withoutFormat } from "#src/base/controls.js";

/** Every character that no terminal may get as it is, of all of Unicode. */
const HOSTILE = Array.from({ length: 0x110000 }, (_, code) => String.fromCodePoint(code)).filter((character) =>
  /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u.test(character),
);

describe("characters of foreign text", () => {
  it("that control, hide or turn text are escapes of JSON", () => {
    assert.ok(HOSTILE.length > 2048 + 65 + 150);
    for (const character of HOSTILE) {
      const escaped = escapeControls(`a${character}b`);
      assert.match(escaped, /^a(?:\\u[0-9a-f]{4}){1,2}b$/);
      assert.equal(JSON.parse(`"${escaped}"`), `a${character}b`);
      assert.equal(escapeWithinLines(character), /[\n\t]/.test(character) ? character : escapeControls(character));
    }
  });

  it("that are seen stay", () => {
    const text = "Füchse, \u{1f98a}, 狐, ثعلب";
    assert.deepEqual([escapeControls(text), escapeWithinLines(text), withoutFormat(text)], [text, text, text]);
    assert.equal(withoutFormat("photo\u202egnp.exe"), "photognp.exe");
  });
});
