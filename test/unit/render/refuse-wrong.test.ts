import assert from "node:assert/strict";
import { createPreviewHost, LatentkitError, registry } from "latentkit";
import { parseGraph } from "#src/graph/parse.js";
import { refuseWrong } from "#src/render/refuse-wrong.js";
import { node } from "../../helpers/graph/graph-nodes.js";

/** A VAE of a file whose name begins with another letter does not fit. */
const host = {
  ...createPreviewHost(),
  checkpoints: () => ["a.safetensors", "b.safetensors"],
  misfit: (taker: { files: readonly { name: string }[] }, given?: object) => {
    if (given === undefined) return undefined;
    const [own, other] = [taker, given as typeof taker].map(({ files: [file] }) => file!.name[0]);
    return own === other ? undefined : new LatentkitError("value.invalid", `${other} does not fit ${own}.`);
  },
};

describe("refuseWrong", () => {
  const graph = parseGraph({
    a: node("CheckpointLoaderSimple", { ckpt_name: "a.safetensors" }),
    b: node("CheckpointLoaderSimple", { ckpt_name: "b.safetensors" }),
    picture: node("EmptyImage", { width: 64, height: 64, batch_size: 1, color: 0 }),
    latent: node("VAEEncode", { pixels: ["picture", 0], vae: ["a", 2] }),
    decoder: node("VAEDecode", { samples: ["latent", 0], vae: ["b", 2] }),
    saver: node("SaveImage", { images: ["decoder", 0], filename_prefix: "x" }),
  });
  const refuse = (keys?: readonly string[]) => () =>
    refuseWrong(graph, {}, { registry, builtIns: registry, host } as never, keys);

  it("refuses links between files that do not fit, if items cannot change them", () => {
    const sentence = /^Node decoder \(VAEDecode\), input "samples": a does not fit b\.$/;
    assert.throws(refuse([]), { message: sentence });
    assert.throws(refuse(["saver.filename_prefix"]), { message: sentence });
    for (const key of ["a.ckpt_name", "b.ckpt_name", "decoder.samples"]) assert.doesNotThrow(refuse([key]), key);
    assert.doesNotThrow(refuse());
  });
});
