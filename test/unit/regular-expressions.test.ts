import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { attacksOn, msOf } from "../helpers/regexp/regexp-attacks.js";
import { type RegExpLiteral, regExpLiterals } from "../helpers/regexp/regexp-literals.js";

const LIMIT_MS = 50;
const root = fileURLToPath(new URL("../../..", import.meta.url));

describe("regular expressions", () => {
  it("are found in sources, whatever stands around them", () => {
    const source = [
      "const half = a![0]! / 2 / b; // not /this/",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a source that holds one
      'const text = "/nor/" + `/nor/ ${/* no */ list.map((x) => `${{ a: /in/g }}` + x / 2 / 3)} /nor/`;',
      "return /[/\\]]\\/x/giu.test(y) ? /b/ : 1;",
    ].join("\n");
    assert.deepEqual(
      regExpLiterals(source).map(({ source, flags, line }) => `${line}/${source}/${flags}`),
      ["2/in/g", "3/[/\\]]\\/x/giu", "3/b/"],
    );
  });

  it("are known to be slow when they are", () => {
    for (const slow of [/\s+$/, /^\s+|\s+$/g, /\{\{\s*([^{}]+?)\s*\}\}/g, /^(a|aa)+$/, /^[0-9]+\.?[0-9]*$/]) {
      assert.ok(slowest(slow) !== undefined, `${slow} is slow`);
    }
    for (const quick of [/^\s*x/, /[^a-z]/g, /^-?(0|[1-9]\d*)(\.\d+)?$/]) assert.equal(slowest(quick), undefined);
  });

  for (const { file, literals } of sources()) {
    it(`take linear time in ${file}`, () => {
      for (const literal of literals) {
        const found = slowest(literal);
        const where = `${file}:${literal.line} /${literal.source}/${literal.flags}`;
        assert.equal(found, undefined, `${where} takes long for ${JSON.stringify(found)}`);
      }
    });
  }

  it("are never put together at run time, where nothing could try them", () => {
    for (const { file, text } of sourceTexts()) assert.doesNotMatch(text, /\bRegExp\(/, file);
  });
});

function slowest(literal: { source: string; flags: string }) {
  return attacksOn(literal).find((attack) => msOf(literal, attack, LIMIT_MS) > LIMIT_MS);
}

function sources(): { file: string; literals: RegExpLiteral[] }[] {
  const found = [...sourceTexts()].map(({ file, text }) => ({ file, literals: regExpLiterals(text) }));
  // so that it fails where the sources are not found
  assert.ok(found.flatMap(({ literals }) => literals).length > 50, "the sources are there");
  return found.filter(({ literals }) => literals.length > 0);
}

function* sourceTexts(): Generator<{ file: string; text: string }> {
  for (const folder of ["src", "bin"]) {
    for (const name of readdirSync(join(root, folder), { recursive: true }) as string[]) {
      if (!/\.(ts|mjs)$/.test(name) || name.endsWith(".d.ts")) continue;
      yield { file: `${folder}/${name}`, text: readFileSync(join(root, folder, name), "utf8") };
    }
  }
}
