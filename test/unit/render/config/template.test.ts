import assert from "node:assert/strict";
import { LatentkitError } from "latentkit";
import { parseTemplate } from "#src/render/config/template.js";
import { growsLinearly } from "../../../helpers/growth.js";

describe("parseTemplate", () => {
  it("reads texts, pointers and headers in order", () => {
    assert.deepEqual(parseTemplate("a {{ /b~1c/0/~0 }}{{X-GitHub-Event}} } {{}}!{{/}}"), [
      "a ",
      { pointer: ["b/c", "0", "~"], written: "/b~1c/0/~0" },
      { header: "x-github-event", written: "X-GitHub-Event" },
      " } ",
      { pointer: [], written: "" },
      "!",
      { pointer: [""], written: "/" },
    ]);
    assert.deepEqual(parseTemplate("}} no reference {"), ["}} no reference {"]);
  });

  for (const [text, sentence] of [
    ["{{/a", 'expected }} after "{{/a"'],
    ["{{a b}}", 'expected a JSON pointer as /action or a header\'s name, not "a b"'],
    ["{{$.a}}", 'expected a JSON pointer as /action or a header\'s name, not "$.a"'],
    ["{{/a~2}}", "expected ~0 for ~ and ~1 for / in the keys of a JSON pointer"],
    ["{{/a}}".repeat(33), "expected at most 32 references"],
  ] as const) {
    it(`refuses ${text.slice(0, 20)}`, () => {
      const isRight = (error: unknown) => error instanceof LatentkitError && error.message === sentence;
      assert.throws(() => parseTemplate(text), isRight);
    });
  }

  it("takes linear time, whatever the text", async () => {
    for (const piece of ["{{", "{{ ", "}}", "{{/~0", "{"])
      await growsLinearly(
        12_500,
        (size) => piece.repeat(size),
        (text) => {
          try {
            parseTemplate(text);
          } catch (error) {
            assert.ok(error instanceof LatentkitError);
          }
        },
      );
  });
});
