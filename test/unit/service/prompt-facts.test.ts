import assert from "node:assert/strict";
import { parseJson } from "#src/io/json/lossless.js";
import { printPromptFacts, readPromptFacts } from "#src/service/prompt-facts.js";

describe("facts of a prompt", () => {
  const facts = {
    ...{ clientId: "me\n", isFront: true, targets: null, outputs: ["9"] },
    extraPnginfo: parseJson('{"workflow":{"seed":18446744073709551615,"scale":1.0}}') as Record<string, unknown>,
  };

  it("are one line, which keeps every digit", () => {
    const message = printPromptFacts(facts);
    assert.doesNotMatch(message, /\n/);
    assert.match(message, /"seed": 18446744073709551615, "scale": 1\.0/);
    assert.equal(printPromptFacts(readPromptFacts(message)!), message);
  });

  it("are found behind the lines of events that waited", () => {
    assert.equal(readPromptFacts(`an event\n${printPromptFacts(facts)}`)?.clientId, "me\n");
  });

  it("are not found in messages of hooks", () => {
    for (const message of ["", "a fox", "{}", '{"clientId": "me"}', '{"clientId": "me", "extraPnginfo": 7}']) {
      assert.equal(readPromptFacts(message), undefined, message);
    }
  });
});
