import assert from "node:assert/strict";
import { Tensor } from "latentkit";
import {
  type LoraTarget,
  placesByName,
  type Rows,
  thirdOf,
  withChangedRows,
} from "#src/host/checkpoint/lora/places.js";
import { OnnxGraph, type Value } from "#src/host/checkpoint/onnx/graph.js";
import { clipPlaces } from "#src/host/checkpoint/text-encoder/model.js";
import { unetPlaces } from "#src/host/checkpoint/unet/lora.js";
import { zImagePlaces } from "#src/host/checkpoint/z-image/names.js";
import { flowShapes } from "../../../../helpers/models/flow-shapes.js";
import { type FullSizeFamily, fullSizePart } from "../../../../helpers/models/full-size.js";
import { weightsOf } from "../../../../helpers/models/lora.js";
import { graphSession } from "../../../../helpers/models/session.js";

const unet = (family: FullSizeFamily): LoraTarget => ({
  places: unetPlaces,
  weights: weightsOf(fullSizePart(family, "model.diffusion_model.")),
});

const text = (
  family: FullSizeFamily,
  prefix: string,
  name: "l" | "h" | "g",
  layout: "hf" | "openclip",
): LoraTarget => ({
  places: clipPlaces({ name, layout }),
  weights: weightsOf(fullSizePart(family, prefix)),
});

const TARGETS = {
  "UNet of SD 1": unet("sd1"),
  "UNet of SDXL": unet("sdxl"),
  "Z-Image": { places: zImagePlaces, weights: weightsOf(flowShapes("z_image")) },
  "CLIP-L of SD 1": text("sd1", "cond_stage_model.transformer.text_model.", "l", "hf"),
  "OpenCLIP-H of SD 2": text("sd2", "cond_stage_model.model.", "h", "openclip"),
  "CLIP-L of SDXL": text("sdxl", "conditioner.embedders.0.transformer.text_model.", "l", "hf"),
  "OpenCLIP-bigG of SDXL": text("sdxl", "conditioner.embedders.1.model.", "g", "openclip"),
};

const TRANSFORMER = "input_blocks.4.1.transformer_blocks.0";
const SD1_TRANSFORMER = "down_blocks.1.attentions.0.transformer_blocks.0";
/** First layer of a text encoder. */
const HF = "encoder.layers.0";
const HF_NAME = "text_model_encoder_layers_0";
const OPENCLIP = "transformer.resblocks.0";

/** Key of the weight for names of LoRA files; a number after a space is the third of it. */
const NAMES: Record<keyof typeof TARGETS, Record<string, string>> = {
  "Z-Image": {
    "diffusion_model.layers.0.attention.to_q": "layers.0.attention.qkv.weight 0",
    "transformer.layers.0.attention.to_k": "layers.0.attention.qkv.weight 1",
    lycoris_layers_0_attention_to_v: "layers.0.attention.qkv.weight 2",
    lora_unet_layers_0_attention_qkv: "layers.0.attention.qkv.weight",
    lora_unet_layers_29_attention_to_q: "layers.29.attention.qkv.weight 0",
    "noise_refiner.1.attention.to_out.0": "noise_refiner.1.attention.out.weight",
    "layers.3.attention.out": "layers.3.attention.out.weight",
    "transformer.layers.3.adaLN_modulation.0": "layers.3.adaLN_modulation.0.weight",
    "transformer.all_x_embedder.2-1": "x_embedder.weight",
    "transformer.all_final_layer.2-1.linear": "final_layer.linear.weight",
    "base_model.model.cap_embedder.1": "cap_embedder.1.weight",
  },
  "UNet of SD 1": {
    lora_unet_conv_in: "input_blocks.0.0.weight",
    lora_unet_down_blocks_1_attentions_0_transformer_blocks_0_attn1_to_q: `${TRANSFORMER}.attn1.to_q.weight`,
    lora_unet_down_blocks_1_attentions_0_transformer_blocks_0_attn2_to_out_0: `${TRANSFORMER}.attn2.to_out.0.weight`,
    lora_unet_down_blocks_1_attentions_0_transformer_blocks_0_ff_net_0_proj: `${TRANSFORMER}.ff.net.0.proj.weight`,
    lora_unet_down_blocks_1_attentions_0_proj_in: "input_blocks.4.1.proj_in.weight",
    lora_unet_mid_block_attentions_0_proj_out: "middle_block.1.proj_out.weight",
    lora_unet_down_blocks_0_downsamplers_0_conv: "input_blocks.3.0.op.weight",
    lora_unet_up_blocks_0_upsamplers_0_conv: "output_blocks.2.1.conv.weight",
    lora_unet_up_blocks_3_resnets_2_conv_shortcut: "output_blocks.11.0.skip_connection.weight",
    lora_unet_time_embedding_linear_1: "time_embed.0.weight",
    lora_unet_input_blocks_4_1_proj_in: "input_blocks.4.1.proj_in.weight",
    lycoris_down_blocks_0_resnets_1_conv2: "input_blocks.2.0.out_layers.3.weight",
    [`unet.${SD1_TRANSFORMER}.attn1.processor.to_q`]: `${TRANSFORMER}.attn1.to_q.weight`,
    [`${SD1_TRANSFORMER}.attn2.processor.to_out`]: `${TRANSFORMER}.attn2.to_out.0.weight`,
    [`unet.${SD1_TRANSFORMER}.attn2.to_out.0`]: `${TRANSFORMER}.attn2.to_out.0.weight`,
    [`${SD1_TRANSFORMER}.attn2.to_v`]: `${TRANSFORMER}.attn2.to_v.weight`,
    [`base_model.model.${SD1_TRANSFORMER}.attn2.to_k`]: `${TRANSFORMER}.attn2.to_k.weight`,
    "unet.mid_block.attentions.0.proj_in": "middle_block.1.proj_in.weight",
    "diffusion_model.middle_block.1.proj_in": "middle_block.1.proj_in.weight",
    "model.diffusion_model.out.2": "out.2.weight",
  },
  "UNet of SDXL": {
    lora_unet_input_blocks_4_1_transformer_blocks_0_attn1_to_q: `${TRANSFORMER}.attn1.to_q.weight`,
    lora_unet_input_blocks_4_1_transformer_blocks_0_ff_net_2: `${TRANSFORMER}.ff.net.2.weight`,
    lora_unet_output_blocks_2_2_conv: "output_blocks.2.2.conv.weight",
    lora_unet_label_emb_0_0: "label_emb.0.0.weight",
    lora_unet_down_blocks_1_attentions_0_transformer_blocks_0_attn1_to_q: `${TRANSFORMER}.attn1.to_q.weight`,
    lora_unet_add_embedding_linear_2: "label_emb.0.2.weight",
    "unet.up_blocks.0.upsamplers.0.conv": "output_blocks.2.2.conv.weight",
  },
  "CLIP-L of SD 1": {
    [`lora_te_${HF_NAME}_self_attn_q_proj`]: `${HF}.self_attn.q_proj.weight`,
    [`lora_te_${HF_NAME}_mlp_fc1`]: `${HF}.mlp.fc1.weight`,
    lora_te_text_model_final_layer_norm: "final_layer_norm.weight",
    lora_te_text_model_embeddings_token_embedding: "embeddings.token_embedding.weight",
    [`text_encoder.text_model.${HF}.self_attn.out_proj`]: `${HF}.self_attn.out_proj.weight`,
    [`text_encoders.clip_l.transformer.text_model.${HF}.mlp.fc2`]: `${HF}.mlp.fc2.weight`,
    [`text_encoders.text_model.${HF}.mlp.fc2`]: `${HF}.mlp.fc2.weight`,
    [`text_encoders.${HF}.mlp.fc2`]: `${HF}.mlp.fc2.weight`,
    [`lycoris_${HF_NAME}_mlp_fc1`]: `${HF}.mlp.fc1.weight`,
  },
  "OpenCLIP-H of SD 2": {
    [`lora_te_${HF_NAME}_self_attn_v_proj`]: `${OPENCLIP}.attn.in_proj_weight 2`,
    [`text_encoder.text_model.${HF}.mlp.fc1`]: `${OPENCLIP}.mlp.c_fc.weight`,
  },
  "CLIP-L of SDXL": {
    [`lora_te1_${HF_NAME}_self_attn_k_proj`]: `${HF}.self_attn.k_proj.weight`,
    [`lora_te_${HF_NAME}_self_attn_k_proj`]: `${HF}.self_attn.k_proj.weight`,
  },
  "OpenCLIP-bigG of SDXL": {
    [`lora_te2_${HF_NAME}_self_attn_q_proj`]: `${OPENCLIP}.attn.in_proj_weight 0`,
    [`lora_te2_${HF_NAME}_self_attn_k_proj`]: `${OPENCLIP}.attn.in_proj_weight 1`,
    [`lora_te2_${HF_NAME}_self_attn_v_proj`]: `${OPENCLIP}.attn.in_proj_weight 2`,
    [`lora_te2_${HF_NAME}_self_attn_out_proj`]: `${OPENCLIP}.attn.out_proj.weight`,
    [`lora_te2_${HF_NAME}_mlp_fc2`]: `${OPENCLIP}.mlp.c_proj.weight`,
    [`lora_te2_${HF_NAME}_layer_norm2`]: `${OPENCLIP}.ln_2.weight`,
    lora_te2_text_model_final_layer_norm: "ln_final.weight",
    lora_te2_text_model_embeddings_position_embedding: "positional_embedding",
    lora_te2_text_projection: "text_projection transposed",
    [`text_encoder_2.text_model.${HF}.mlp.fc1`]: `${OPENCLIP}.mlp.c_fc.weight`,
    [`text_encoders.clip_g.transformer.text_model.${HF}.mlp.fc1`]: `${OPENCLIP}.mlp.c_fc.weight`,
  },
};

describe("names of layers in LoRA files", () => {
  for (const [title, target] of Object.entries(TARGETS) as [keyof typeof TARGETS, LoraTarget][]) {
    it(`${title}: each style has its own`, () => {
      const places = placesByName(target);
      for (const [name, place] of Object.entries(NAMES[title])) {
        const { key, rows, transposed } = places.get(name)?.weight ?? assert.fail(name);
        const [start, end] = rows?.[0] ?? [];
        const third = end === undefined ? undefined : start! / (end - start!);
        assert.equal([key, third, transposed && "transposed"].filter((part) => part !== undefined).join(" "), place);
      }
    });

    it(`${title}: every weight and bias has names`, () => {
      const named = new Set<string>();
      for (const { weight, bias } of placesByName(target).values())
        for (const place of [weight, bias]) if (place) named.add(place.key);
      const without = ["logit_scale", "embeddings.position_ids", "x_pad_token", "cap_pad_token"];
      assert.deepEqual(
        [...target.weights.keys()].filter((key) => !named.has(key)),
        [...target.weights.keys()].filter((key) => without.includes(key)),
      );
    });
  }

  it("a UNet has no names of text encoders, and the second encoder none of the first", () => {
    const [l, g] = [placesByName(TARGETS["CLIP-L of SDXL"]), placesByName(TARGETS["OpenCLIP-bigG of SDXL"])];
    assert.deepEqual(
      [...g.keys()].filter((name) => l.has(name)),
      [],
    );
    const names = placesByName(TARGETS["UNet of SDXL"]);
    assert.deepEqual(
      [...names.keys()].filter((name) => l.has(name) || g.has(name)),
      [],
    );
  });
});

/** 0 … 5 after changes of some of them: each takes the rows in its order and adds 10, 20 … to the first, the second … */
async function changed(axis: 0 | 1, ...all: Rows[]): Promise<number[]> {
  const graph = new OnnxGraph("rows");
  const shape = axis === 0 ? [6, 1] : [1, 6];
  const changes = all.map((rows) => ({
    rows,
    change: (part: Value) => {
      const count = rows.reduce((sum, [start, end]) => sum + end - start, 0);
      const tens = Array.from({ length: count }, (_, index) => 10 * (index + 1));
      return graph.node("Add", [part, graph.floats(tens, axis === 0 ? [count, 1] : [1, count])]);
    },
  }));
  const x = graph.input("x", "float", shape);
  graph.output(withChangedRows(graph, x, { axis, length: 6 }, changes), "out", "float", shape);
  const session = await graphSession(graph.encode({ overridable: false }));
  const { out } = await session.run({ x: Tensor.from([0, 1, 2, 3, 4, 5], shape) });
  await session.release();
  return [...out!.data];
}

describe("withChangedRows", () => {
  it("changes thirds, rows in another order, and rows of several changes, on either axis", async () => {
    for (const axis of [0, 1] as const) {
      assert.deepEqual(await changed(axis, thirdOf(6, 1)), [0, 1, 12, 23, 4, 5]);
      assert.deepEqual(await changed(axis, thirdOf(6, 0), thirdOf(6, 2)), [10, 21, 2, 3, 14, 25]);
      const halves: Rows = [
        [3, 6],
        [0, 3],
      ];
      assert.deepEqual(await changed(axis, halves), [40, 51, 62, 13, 24, 35]);
      assert.deepEqual(await changed(axis, [[1, 4]], [[2, 6]]), [0, 11, 32, 53, 34, 45]);
      assert.deepEqual(await changed(axis, [[0, 6]]), [10, 21, 32, 43, 54, 65]);
    }
  });
});
