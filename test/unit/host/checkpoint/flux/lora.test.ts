import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import { buildFlux } from "#src/host/checkpoint/flux/build.js";
import { fluxPlaces } from "#src/host/checkpoint/flux/lora.js";
import { changesOf, unmatchedModules } from "#src/host/checkpoint/lora/changes.js";
import type { Place } from "#src/host/checkpoint/lora/places.js";
import { type LoraTarget, placesByName } from "#src/host/checkpoint/lora/places.js";
import { readLora, takingInputs } from "#src/host/checkpoint/lora/recognise.js";
import { OnnxGraph } from "#src/host/checkpoint/onnx/graph.js";
import { t5Places } from "#src/host/checkpoint/text-encoder/t5.js";
import { networkOf } from "#src/host/checkpoint/weights/network.js";
import { readValues } from "#src/host/checkpoint/weights/values.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { FLUX_DEV, fluxFeeds, latentOf } from "../../../../helpers/models/flux-feeds.js";
import { fluxFile, fluxLayers, fluxWeights, fullSizeFlux } from "../../../../helpers/models/golden-flux.js";
import { layerError } from "../../../../helpers/models/layers.js";
import { weightsOf } from "../../../../helpers/models/lora.js";
import { graphSession } from "../../../../helpers/models/session.js";

const OF_WEIGHTS = 2e-6;
const OF_NETWORKS = 5e-6;
const { flux1_dev, flux2_dev, t5xxl } = fullSizeFlux();
const FLUX: LoraTarget = { places: fluxPlaces, weights: weightsOf(flux1_dev) };
const FLUX2: LoraTarget = { places: fluxPlaces, weights: weightsOf(flux2_dev) };
const T5: LoraTarget = { places: t5Places, weights: weightsOf(t5xxl) };
const H = 3072;

const shown = ({ key, rows }: Place): string => [key, ...(rows ?? []).map((range) => range.join("-"))].join(" ");
const double = "double_blocks.7.";
const single = "single_blocks.30.";

/** Where a name of a LoRA file leads: the key, and the rows of it. */
const FLUX_NAMES: Record<string, string> = {
  lora_unet_double_blocks_7_img_attn_qkv: `${double}img_attn.qkv.weight`,
  "diffusion_model.double_blocks.7.img_attn.qkv": `${double}img_attn.qkv.weight`,
  "double_blocks.7.img_attn.qkv": `${double}img_attn.qkv.weight`,
  "transformer.transformer_blocks.7.attn.to_q": `${double}img_attn.qkv.weight 0-${H}`,
  "base_model.model.transformer_blocks.7.attn.to_k": `${double}img_attn.qkv.weight ${H}-${2 * H}`,
  lora_transformer_transformer_blocks_7_attn_to_v: `${double}img_attn.qkv.weight ${2 * H}-${3 * H}`,
  lycoris_transformer_blocks_7_attn_add_q_proj: `${double}txt_attn.qkv.weight 0-${H}`,
  "transformer.transformer_blocks.7.attn.add_k_proj": `${double}txt_attn.qkv.weight ${H}-${2 * H}`,
  "transformer.transformer_blocks.7.attn.to_out.0": `${double}img_attn.proj.weight`,
  "transformer.transformer_blocks.7.attn.to_add_out": `${double}txt_attn.proj.weight`,
  "transformer.transformer_blocks.7.ff.net.0.proj": `${double}img_mlp.0.weight`,
  "transformer.transformer_blocks.7.ff_context.net.2": `${double}txt_mlp.2.weight`,
  "transformer.transformer_blocks.7.norm1.linear": `${double}img_mod.lin.weight`,
  "transformer.transformer_blocks.7.norm1_context.linear": `${double}txt_mod.lin.weight`,
  "transformer.transformer_blocks.7.attn.norm_added_k": `${double}txt_attn.norm.key_norm.scale`,
  lora_unet_single_blocks_30_linear1: `${single}linear1.weight`,
  "transformer.single_transformer_blocks.30.attn.to_v": `${single}linear1.weight ${2 * H}-${3 * H}`,
  "transformer.single_transformer_blocks.30.proj_mlp": `${single}linear1.weight ${3 * H}-${7 * H}`,
  "transformer.single_transformer_blocks.30.proj_out": `${single}linear2.weight`,
  "transformer.single_transformer_blocks.30.norm.linear": `${single}modulation.lin.weight`,
  "transformer.single_transformer_blocks.30.attn.norm_q": `${single}norm.query_norm.scale`,
  "double_blocks.7.processor.qkv1": `${double}img_attn.qkv.weight`,
  "double_blocks.7.processor.qkv2": `${double}txt_attn.qkv.weight`,
  "double_blocks.7.processor.proj1": `${double}img_attn.proj.weight`,
  "double_blocks.7.processor.proj2": `${double}txt_attn.proj.weight`,
  "single_blocks.30.processor.qkv": `${single}linear1.weight 0-${3 * H}`,
  "diffusion_model.single_blocks.30.processor.proj": `${single}linear2.weight`,
  "transformer.x_embedder": "img_in.weight",
  "transformer.context_embedder": "txt_in.weight",
  "transformer.proj_out": "final_layer.linear.weight",
  "transformer.norm_out.linear": `final_layer.adaLN_modulation.1.weight ${H}-${2 * H} 0-${H}`,
  "transformer.time_text_embed.timestep_embedder.linear_1": "time_in.in_layer.weight",
  "transformer.time_text_embed.text_embedder.linear_2": "vector_in.out_layer.weight",
  "transformer.time_text_embed.guidance_embedder.linear_1": "guidance_in.in_layer.weight",
};
const H2 = 6144;
const FLUX2_NAMES: Record<string, string> = {
  lora_unet_double_stream_modulation_img_lin: "double_stream_modulation_img.lin.weight",
  "transformer.double_stream_modulation_txt.linear": "double_stream_modulation_txt.lin.weight",
  "transformer.single_stream_modulation.linear": "single_stream_modulation.lin.weight",
  "transformer.transformer_blocks.7.attn.to_k": `${double}img_attn.qkv.weight ${H2}-${2 * H2}`,
  "transformer.transformer_blocks.7.ff.linear_in": `${double}img_mlp.0.weight`,
  "transformer.transformer_blocks.7.ff_context.linear_out": `${double}txt_mlp.2.weight`,
  "diffusion_model.single_blocks.30.linear1": `${single}linear1.weight`,
  "transformer.single_transformer_blocks.30.attn.to_qkv_mlp_proj": `${single}linear1.weight`,
  "transformer.single_transformer_blocks.30.attn.to_out": `${single}linear2.weight`,
  "transformer.time_guidance_embed.timestep_embedder.linear_1": "time_in.in_layer.weight",
  "transformer.time_guidance_embed.guidance_embedder.linear_2": "guidance_in.out_layer.weight",
  "transformer.norm_out.linear": `final_layer.adaLN_modulation.1.weight ${H2}-${2 * H2} 0-${H2}`,
};
const T5_NAMES: Record<string, string> = {
  lora_te3_encoder_block_0_layer_0_SelfAttention_q: "encoder.block.0.layer.0.SelfAttention.q.weight",
  lora_te2_encoder_block_3_layer_1_DenseReluDense_wi_0: "encoder.block.3.layer.1.DenseReluDense.wi_0.weight",
  "text_encoder_2.encoder.block.0.layer.0.SelfAttention.o": "encoder.block.0.layer.0.SelfAttention.o.weight",
  "text_encoders.t5xxl.transformer.shared": "shared.weight",
};

describe("names of Flux's layers in LoRA files", () => {
  const folder = temporaryFolder();
  const layers = fluxLayers();

  it("each style has its own, of rows if layers are one weight", () => {
    for (const [target, names] of [
      [FLUX, FLUX_NAMES],
      [FLUX2, FLUX2_NAMES],
      [T5, T5_NAMES],
    ] as const) {
      const places = placesByName(target);
      for (const [name, place] of Object.entries(names))
        assert.equal(shown(places.get(name)?.weight ?? assert.fail(name)), place, name);
    }
    const bias = placesByName(FLUX).get("transformer.single_transformer_blocks.30.proj_mlp")!.bias!;
    assert.equal(shown(bias), `${single}linear1.bias ${3 * H}-${7 * H}`);
  });

  it("every weight and bias has names in both styles", () => {
    for (const [target, shapes] of [
      [FLUX, flux1_dev],
      [FLUX2, flux2_dev],
    ] as const)
      for (const prefix of ["diffusion_model.", "lora_transformer_"]) {
        const named = new Set<string>();
        for (const [name, { weight, bias }] of placesByName(target))
          if (name.startsWith(prefix)) for (const place of [weight, bias]) if (place) named.add(place.key);
        assert.deepEqual([...named].sort(), Object.keys(shapes).sort());
      }
  });

  for (const style of ["kohya", "diffusers", "control"])
    it(`changes a model by a file of the style of ${style} as the reference does`, async () => {
      const [vector] = layers[`lora_${style}`];
      const lora = await readLora(await fluxFile(`loras/flux_${style}`, folder()), readValues);
      const inputs = lora.inputs ?? FLUX_DEV.inputs;
      const weights = takingInputs(await fluxWeights("diffusion_models/flux_dev", folder()), inputs);
      const target: LoraTarget = { places: fluxPlaces, weights };
      const t5 = await fluxWeights("text_encoders/t5xxl_fp16", folder());
      const unmatched = unmatchedModules(lora, [target, { places: t5Places, weights: t5 }]);
      // those of CLIP alone
      assert.deepEqual(
        unmatched.filter((name) => !name.startsWith("lora_te1_text_model_")),
        [],
      );
      const graph = new OnnxGraph("changed");
      const network = networkOf(graph, weights, { changes: changesOf(lora, target, vector.strength) });
      const config = { ...FLUX_DEV, inputs };
      buildFlux(network, config);
      for (const key of Object.keys(vector.merged)) {
        const { shape } = weights.get(key)!;
        graph.output(network.weight(key, shape), key, "float", shape);
      }
      const session = await graphSession(graph.encode({ overridable: false }));
      const { out, ...merged } = await session.run(fluxFeeds(vector, config, layers.tensor));
      for (const [key, name] of Object.entries<string>(vector.merged)) {
        const expected = layers.tensor(name);
        assert.ok(layerError(columnsOf(merged[key]!, expected), expected) < OF_WEIGHTS, key);
      }
      const expected = layers.tensor(vector.out);
      const picture = latentOf(out!, expected, config);
      assert.ok(layerError(picture, expected) < OF_NETWORKS);
      await session.release();
    });
});

/** The first columns of a matrix, as many as another has; another tensor as it is. */
function columnsOf(value: Tensor, { shape }: Tensor): Tensor {
  const [rows, columns] = shape as [number, number?];
  if (columns === undefined) return value;
  const width = value.shape[1]!;
  const data = Array.from(
    { length: rows * columns },
    (_, i) => value.data[Math.floor(i / columns) * width + (i % columns)]!,
  );
  return Tensor.from(data, shape);
}
