import assert from "node:assert/strict";
import { suggest } from "#src/base/suggest.js";

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

  it("offers nothing if nothing is close, or the word is not a text", () => {
    for (const word of ["signal", "", 5, null, undefined, Symbol("outputDir")]) {
      assert.deepEqual(suggest(word, ["outputDir"]), { suggestion: undefined, hint: "" });
    }
  });
});
