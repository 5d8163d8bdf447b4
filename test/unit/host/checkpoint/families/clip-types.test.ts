import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clip, Conditioning, Host, Tensor } from "latentkit";
import { createCheckpointHost } from "latentkit/models";
import { refuses } from "../../../../helpers/errors.js";
import { fluxLayers, unpackFlux } from "../../../../helpers/models/golden-flux.js";
import { layerError } from "../../../../helpers/models/layers.js";

interface Encoded {
  readonly prompt: string;
  readonly cond: string;
  readonly pooled: string;
}

const TOLERANCE = 5e-6;
const rows = (context: Tensor): Tensor => context.reshape(context.shape.slice(1));

describe("clips of Flux", () => {
  let folder: string;
  const { encode, tensor } = fluxLayers();
  const vectors: readonly Encoded[] = encode;
  let host: Host;
  let clip: Clip;
  const load = (name: string, type = "flux"): Promise<Clip> =>
    host.loadFile!("text_encoders", `${name}.safetensors`, undefined, { type });
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "latentkit-flux-"));
    unpackFlux(folder);
    host = createCheckpointHost({ models: folder });
    clip = (await load("t5xxl_fp16")).joinedWith!([await load("clip_l")]);
  });
  after(async () => {
    await host.close?.();
    rmSync(folder, { recursive: true });
  });

  it("encode as the reference does", async () => {
    for (const { prompt, cond, pooled } of vectors) {
      const [[context, options]] = (await clip.encodeText!(prompt)) as [Conditioning[number]];
      assert.ok(layerError(rows(context), tensor(cond)) < TOLERANCE, prompt);
      // CLIP's tokens of other texts are those of transformers 5 in this set, which takes ideographs together
      if (/^\p{ASCII}*$/u.test(prompt))
        assert.ok(layerError(rows(options.pooled_output as Tensor), tensor(pooled)) < TOLERANCE, prompt);
    }
  });

  it("never cut a prompt, but refuse one beyond every use", async () => {
    const [[context]] = (await clip.encodeText!("cat ".repeat(300))) as [Conditioning[number]];
    assert.deepEqual(context.shape, [1, 301, 48]);
    const long = clip.encodeText!("cat ".repeat(2048));
    await refuses(
      long,
      "value.out-of-range",
      /^text encoder T5 of t5xxl_fp16\.safetensors: .*2048 tokens, received 2049/,
    );
  });

  it("take a text for each of their encoders, and no other", async () => {
    const [[context, { pooled_output }]] = (await clip.encodeTexts!({ clip_l: "", t5xxl: vectors[1]!.prompt }, [])) as [
      Conditioning[number],
    ];
    assert.ok(layerError(rows(context), tensor(vectors[1]!.cond)) < TOLERANCE);
    assert.ok(layerError(rows(pooled_output as Tensor), tensor(vectors[0]!.pooled)) < TOLERANCE);
    const others: Record<string, string>[] = [{ clip_l: "" }, { clip_l: "", t5xxl: "", clip_g: "" }, {}];
    for (const texts of others)
      await refuses(
        clip.encodeTexts!(texts, []),
        "value.invalid",
        /expected a text for each of Flux's encoders, clip_l and t5xxl, received/,
      );
  });

  it("are two encoders, whatever their order, and no others", async () => {
    const [t5, l] = [await load("t5xxl_fp16"), await load("clip_l")];
    const expected = 'Text encoders of Flux: expected CLIP-L and T5 once, with type "flux", received ';
    const sentence = (received: string): RegExp => new RegExp(`^${expected}${received}\\.$`);
    await refuses(t5.encodeText!("a"), "value.invalid", sentence("T5"));
    await refuses(() => t5.joinedWith!([t5]), "value.invalid", sentence("T5 and T5"));
    await refuses(() => t5.joinedWith!([l, l]), "value.invalid", sentence("T5, CLIP-L and CLIP-L"));
    const other = await load("clip_l", "stable_diffusion");
    await refuses(() => t5.joinedWith!([other]), "value.invalid", sentence("T5 and another"));
    const [[context]] = (await l.joinedWith!([t5]).encodeText!(vectors[1]!.prompt)) as [Conditioning[number]];
    assert.ok(layerError(rows(context), tensor(vectors[1]!.cond)) < TOLERANCE);
    for (const type of ["stable_diffusion", "lumina2"])
      await refuses(load("t5xxl_fp16", type), "model.unsupported", new RegExp(`received type "${type}"`));
    await refuses(load("clip_l", "chroma"), "model.unsupported", /received type "chroma"/);
  });

  it("pad a prompt of T5 as a node asks", async () => {
    const [[context]] = (await clip.withT5Options!({ min_padding: 2, min_length: 0 }).encodeText!("a cat")) as [
      Conditioning[number],
    ];
    assert.deepEqual(context.shape, [1, 6, 48]);
    const chroma = await load("t5xxl_fp16", "chroma");
    const [[short, options]] = (await chroma.encodeText!("a cat")) as [Conditioning[number]];
    assert.deepEqual([short.shape, options], [[1, 4, 48], {}]);
  });
});
