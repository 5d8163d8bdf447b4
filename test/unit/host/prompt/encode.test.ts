import assert from "node:assert/strict";
import { encodePrompt, LatentkitError, Tensor } from "latentkit";
import { fakeClip } from "../../../helpers/graph/fake-clip.js";

const clip = fakeClip("l");

const refusal = (code: string, message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof LatentkitError);
  assert.equal(error.code, code);
  assert.match(error.message, message);
  return true;
};

/** [text's tensor, start, end] of a prompt in the A1111 style. */
async function scheduled(text: string, steps: number): Promise<[Tensor, unknown, unknown][]> {
  const conditioning = await encodePrompt(clip, text, { a1111PromptStyle: true, steps });
  return conditioning.map(([cond, { start_percent, end_percent }]) => [cond, start_percent, end_percent]);
}

const encoded = async (text: string): Promise<Tensor> => (await encodePrompt(clip, text))[0]![0];

describe("encodePrompt", () => {
  it("joins the chunks of a long prompt on the token axis", async () => {
    const [entry] = await encodePrompt(fakeClip("xl"), Array.from({ length: 100 }, (_, i) => `w${i}`).join(" "));
    assert.deepEqual(entry![0].shape, [1, 154, 16]);
    assert.deepEqual((entry![1].pooled_output as Tensor).shape, [1, 8]);
  });

  it("fills up the encoder that needs fewer chunks", async () => {
    const [l, g] = fakeClip("xl").encoders;
    const brief = { ...l!, tokenize: (text: string) => l!.tokenize(text).slice(0, 3) };
    const [entry] = await encodePrompt({ encoders: [brief, g!] }, "a ".repeat(80), { weightInterpretation: "A1111" });
    assert.deepEqual(entry![0].shape, [1, 154, 16]);
  });

  it("keeps the unweighted pooled output if weights shall not reach it", async () => {
    const xl = fakeClip("xl");
    const pooled = async (text: string, applyToPooled: boolean) => {
      const options = { weightInterpretation: "compel", applyToPooled };
      return (await encodePrompt(xl, text, options))[0]![1].pooled_output;
    };
    assert.deepEqual(await pooled("a (b:0.5)", false), await pooled("a b", false));
    assert.notDeepEqual(await pooled("a (b:0.5)", true), await pooled("a (b:0.5)", false));
  });

  it("has no pooled output if the encoder has none", async () => {
    const encoder = clip.encoders[0]!;
    const bare = { ...encoder, encode: async (chunks: number[][]) => ({ cond: (await encoder.encode(chunks)).cond }) };
    for (const weightInterpretation of ["comfy", "A1111", "comfy++", "compel", "down_weight"]) {
      const [entry] = await encodePrompt({ encoders: [bare] }, "a (b:0.5) (c:2)", { weightInterpretation });
      assert.deepEqual(entry![1], {});
    }
  });

  it("scales the largest weight to wMax in down_weight", async () => {
    const full = await encodePrompt(clip, "a (b:2)", { weightInterpretation: "down_weight", wMax: 2 });
    const capped = await encodePrompt(clip, "a (b:2)", { weightInterpretation: "down_weight", wMax: 1 });
    assert.notDeepEqual(full[0]![0].data, capped[0]![0].data);
  });

  it("returns one entry for each range of steps in the A1111 style", async () => {
    const [a, b] = await scheduled("x [cat:dog:0.5]", 20);
    assert.deepEqual(a!.slice(1), [0, 0.5]);
    assert.deepEqual(b!.slice(1), [0.5, 1]);
    assert.deepEqual(a![0].data, (await encoded("x cat")).data);
    assert.deepEqual(b![0].data, (await encoded("x dog")).data);
    const turns = await scheduled("[cat|dog]", 4);
    assert.equal(turns.length, 4);
    assert.equal(turns[0]![0], turns[2]![0], "equal texts share their tensor");
    assert.deepEqual(await scheduled("cat", 4), [[await encoded("cat"), undefined, undefined]]);
  });

  it("restores the mean in the A1111 style, whatever the interpretation is called", async () => {
    const options = { a1111PromptStyle: true, weightInterpretation: "comfy" };
    const [styled] = await encodePrompt(clip, "a (b:1.5) c", options);
    const [reference] = await encodePrompt(clip, "a (b:1.5) c", { weightInterpretation: "A1111" });
    assert.deepEqual(styled![0].data, reference![0].data);
  });

  it("limits a schedule by TIMESTEP", async () => {
    const conditioning = await encodePrompt(clip, "[a:b:0.5] TIMESTEP:0.25", { a1111PromptStyle: true, steps: 4 });
    const ranges = conditioning.map(([, { start_percent, end_percent }]) => [start_percent, end_percent]);
    assert.deepEqual(ranges, [
      [0.25, 1],
      [0, 0.25],
    ]);
    assert.ok(conditioning[0]![0].data.every((value) => value === 0));
  });

  it("leaves TIMESTEP on an earlier line as text", async () => {
    assert.equal((await encodePrompt(clip, "a TIMESTEP:0.5\nb")).length, 1);
  });

  it("refuses names it does not have, with those it has", async () => {
    const names =
      /expected weight interpretation comfy, A1111, comfy\+\+, compel or down_weight, received "fixed attention"/;
    const fixed = encodePrompt(clip, "a", { weightInterpretation: "fixed attention" });
    await assert.rejects(fixed, refusal("value.invalid", names));
    const number = encodePrompt(clip, "a", { tokenNormalization: 5 as unknown as string });
    await assert.rejects(number, refusal("value.invalid", /none, mean/));
  });

  it("refuses numbers out of range and anything but a clip", async () => {
    for (const steps of [0, 1.5, 10001, Number.NaN]) {
      await assert.rejects(encodePrompt(clip, "a", { steps }), refusal("value.out-of-range", /steps: expected/));
    }
    await assert.rejects(encodePrompt(clip, "a", { wMax: Number.NaN }), refusal("value.invalid", /wMax/));
    await assert.rejects(encodePrompt({ encoders: [] }, "a"), refusal("value.invalid", /at least one encoder/));
    await assert.rejects(encodePrompt(clip, 5 as unknown as string), refusal("value.invalid", /expected a text/));
    const wrong = { ...clip.encoders[0]!, encode: async () => ({ cond: Tensor.zeros([1, 76, 8]) }) };
    await assert.rejects(encodePrompt({ encoders: [wrong] }, "a"), refusal("value.invalid", /\[1, 77, dim\]/));
  });

  it("refuses a prompt that is too long before its tensors exist", async () => {
    await assert.rejects(
      encodePrompt(clip, "a ".repeat(50_000)),
      refusal("value.out-of-range", /chunks of 75 tokens; at most 256\./),
    );
    await assert.rejects(encodePrompt(clip, "(".repeat(1_000_000)), refusal("value.out-of-range", /at most 256\./));
    const many = Array.from({ length: 6000 }, (_, i) => `(w${i}:1.2)`).join("");
    const variants = encodePrompt(clip, many, { weightInterpretation: "comfy++" });
    await assert.rejects(variants, refusal("value.out-of-range", /chunks to be encoded; at most 4096\./));
  });
});
