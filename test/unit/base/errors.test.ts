import assert from "node:assert/strict";
import { LatentkitError } from "latentkit";
import { atNode, inputError, suggest } from "#src/base/errors.js";

describe("atNode", () => {
  it("puts a comma before a subject and a colon before a sentence", () => {
    const at = { nodeId: "1", node: "Loader" };
    const texts = [
      'input "a": expected 1, received 2.',
      'host "a": it has none.',
      "Tensor data: expected a list, received 1.",
      "The file is gone.",
    ];
    assert.deepEqual(
      texts.map((text) => atNode(at, text)),
      [
        'Node 1 (Loader), input "a": expected 1, received 2.',
        'Node 1 (Loader), host "a": it has none.',
        "Node 1 (Loader), Tensor data: expected a list, received 1.",
        "Node 1 (Loader): The file is gone.",
      ],
    );
    assert.deepEqual(
      [{ nodeId: "1" }, { node: "Loader" }, {}].map((less) => atNode(less, "Gone.")),
      ["Node 1: Gone.", "Loader: Gone.", "Gone."],
    );
  });
});

describe("LatentkitError", () => {
  it("keeps its message in JSON, alone and inside other values", () => {
    const error = inputError("input.missing", { nodeId: "5", node: "Noise", input: "seed" }, "a number", undefined);
    const expected = {
      name: "LatentkitError",
      code: "input.missing",
      message: 'Node 5 (Noise), input "seed": expected a number, received nothing.',
      details: { nodeId: "5", node: "Noise", input: "seed", expected: "a number", received: "nothing" },
    };
    assert.deepEqual(JSON.parse(JSON.stringify(error)), expected);
    assert.deepEqual(JSON.parse(JSON.stringify({ event: [error] })), { event: [expected] });
    const { message } = JSON.parse(JSON.stringify(new LatentkitError("node.failed", "No."))) as LatentkitError;
    assert.equal(message, "No.");
  });
});

describe("suggest", () => {
  it("offers the closest candidate, shown as the caller wants it", () => {
    const candidates = ["outputDir", "inputDir"];
    assert.deepEqual(suggest("outputdir", candidates), { suggestion: "outputDir", hint: " Did you mean outputDir?" });
    assert.equal(suggest("inputdri", candidates, (name) => `--${name}`).hint, " Did you mean --inputDir?");
  });

  it("counts two letters that changed places as one edit", () => {
    assert.equal(suggest("prot", ["host", "port"]).suggestion, "port");
    assert.equal(suggest("tpor", ["port"]).suggestion, undefined);
  });

  it("offers a name that differs in signs, one that the word begins, and one that begins the word", () => {
    const samplers = ["euler", "euler_ancestral", "euler_ancestral_cfg_pp", "dpmpp_2m", "dpmpp_2m_sde", "uni_pc"];
    const offered = (word: string) => suggest(word, samplers).suggestion;
    assert.equal(offered("DPM++ 2M"), "dpmpp_2m");
    assert.equal(offered("DPM++ 2M SDE Karras"), "dpmpp_2m_sde");
    assert.equal(offered("dpmpp_2m_karras"), "dpmpp_2m");
    assert.equal(offered("euler_a"), "euler_ancestral");
    assert.equal(offered("UniPC"), "uni_pc");
    assert.equal(offered("eular"), "euler");
  });

  it("offers nothing where nothing is close, or the word is no text", () => {
    for (const word of ["signal", "", 5, null, undefined, Symbol("outputDir")]) {
      assert.deepEqual(suggest(word, ["outputDir"]), { suggestion: undefined, hint: "" });
    }
  });
});
