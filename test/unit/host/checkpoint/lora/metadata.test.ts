import assert from "node:assert/strict";
import { alphaInMetadata, metadataNote } from "#src/host/checkpoint/lora/metadata.js";
import { refuses } from "../../../../helpers/errors.js";

const UNET = "unet.down_blocks.0.attentions.0.transformer_blocks.0.attn1.to_q";
const json = (settings: object): Record<string, string> => ({ lora_adapter_metadata: JSON.stringify(settings) });

describe("alphaInMetadata", () => {
  it("reads PEFT's alpha of each network, plain, as JSON or both", () => {
    for (const metadata of [
      { "unet.lora_alpha": "2", "unet.r": "4", "text_encoder.lora_alpha": "8.5", "text_encoder_2.lora_alpha": "16" },
      json({ unet: { lora_alpha: 2, r: 4 }, text_encoder: { lora_alpha: 8.5 }, text_encoder_2: { lora_alpha: 16 } }),
      {
        unet_lora_config: JSON.stringify({ lora_alpha: 2, r: 4 }),
        text_encoder_lora_config: JSON.stringify({ lora_alpha: 8.5 }),
        text_encoder_2_lora_config: JSON.stringify({ lora_alpha: 16 }),
      },
      json({ "unet.lora_alpha": 2, "unet.r": 4, "text_encoder.lora_alpha": 8.5, "text_encoder_2.lora_alpha": 16 }),
      {
        "unet.lora_alpha": "2",
        ...json({ "unet.lora_alpha": 2, "text_encoder.lora_alpha": 8.5, "text_encoder_2.lora_alpha": 16.0 }),
      },
    ]) {
      const { alphaOf } = alphaInMetadata("a.safetensors", metadata);
      for (const [module, alpha] of [
        [UNET, 2],
        [UNET.slice("unet.".length), 2],
        ["lora_unet_conv_in", 2],
        ["text_encoder.text_model.encoder.layers.0.mlp.fc1", 8.5],
        ["lora_te_text_model_encoder_layers_0_mlp_fc1", 8.5],
        ["lora_te1_text_model_encoder_layers_0_mlp_fc1", 8.5],
        ["text_encoder_2.text_model.encoder.layers.0.mlp.fc1", 16],
        ["lora_te2_text_model_encoder_layers_0_mlp_fc1", 16],
      ] as const)
        assert.deepEqual(alphaOf(module), { alpha, isRankStabilised: false }, module);
    }
  });

  it("takes settings without a network for all, and none for what has no settings", () => {
    const { alphaOf } = alphaInMetadata("a.safetensors", { lora_alpha: "3", r: "4" });
    assert.equal(alphaOf("base_model.model.down_blocks.0.x").alpha, 3);
    assert.equal(alphaOf("text_encoder_2.x").alpha, 3);
    assert.deepEqual(alphaInMetadata("a.safetensors", { format: "pt" }).alphaOf(UNET), {});
    assert.deepEqual(alphaInMetadata("a.safetensors", { "unet.lora_alpha": "3" }).alphaOf("text_encoder.x"), {});
  });

  it("reads PEFT's own JSON under its usual names, and diffusers' transformer", () => {
    const settings = JSON.stringify({ lora_alpha: 2, r: 4 });
    for (const metadata of [
      ...["adapter_config", "peft_config", "lora_config", "unet_lora_config"].map((key) => ({ [key]: settings })),
      { peft_config: JSON.stringify({ default: { lora_alpha: 2 } }) },
      { "transformer.lora_alpha": "2" },
      json({ "transformer.lora_alpha": 2 }),
    ])
      assert.equal(alphaInMetadata("a.safetensors", metadata).alphaOf(UNET).alpha, 2, JSON.stringify(metadata));
    assert.deepEqual(alphaInMetadata("a", { lora_config: "rank 4" }).alphaOf(UNET), {});
  });

  it("applies patterns to the names of kohya and of attention processors", () => {
    const layer = "mid_block.attentions.0.transformer_blocks.0.attn1";
    const alpha_pattern = { [`${layer}.to_v`]: 2, [`${layer}.to_out.0`]: 3, "attn2.to_k": 5, proj: 7 };
    const { alphaOf, unusedNote } = alphaInMetadata("a.safetensors", json({ unet: { lora_alpha: 16, alpha_pattern } }));
    const modules = [
      [`lora_unet_${layer.replaceAll(".", "_")}_to_v`, 2],
      [`unet.${layer}.processor.to_v`, 2],
      [`unet.${layer}.processor.to_out`, 3],
      [`lora_unet_${layer.replaceAll(".", "_")}_to_out_0`, 3],
      [`lycoris_down_blocks_0_attn2_to_k`, 5],
      [`lora_unet_x_q_proj`, 16],
      [`unet.x.q_proj`, 16],
    ] as const;
    for (const [module, alpha] of modules) assert.equal(alphaOf(module).alpha, alpha, module);
    assert.equal(
      unusedNote(modules.map(([module]) => module)),
      'LoRA "a.safetensors": unet.alpha_pattern of its metadata has no effect for "proj", which matches no layer.',
    );
    assert.equal(unusedNote([...modules.map(([module]) => module), "unet.x.proj"]), undefined);
  });

  it("reads alphas of single layers, and rank-stabilised ones", () => {
    const { alphaOf } = alphaInMetadata(
      "a.safetensors",
      json({
        "unet.lora_alpha": 2,
        "unet.alpha_pattern": { "attn1.to_q": 5, "^mid_block\\.x$": 7 },
        "unet.use_rslora": true,
        "text_encoder.lora_alpha": 1,
      }),
    );
    assert.deepEqual(alphaOf(UNET), { alpha: 5, isRankStabilised: true });
    assert.deepEqual(alphaOf(UNET.replace("to_q", "to_k")), { alpha: 2, isRankStabilised: true });
    assert.equal(alphaOf("unet.mid_block.x").alpha, 7);
    assert.equal(alphaOf("unet.xattn1.to_q").alpha, 2);
    assert.deepEqual(alphaOf("text_encoder.x"), { alpha: 1, isRankStabilised: false });
  });

  it("refuses settings that are not numbers, contradict or cannot be read, by key", async () => {
    const cases: [Record<string, string>, string, RegExp][] = [
      [
        { "unet.lora_alpha": "nan" },
        "model.invalid",
        /"x\.safetensors": unet\.lora_alpha of its metadata: expected a finite number, received "nan"/,
      ],
      [{ "unet.lora_alpha": "Infinity" }, "model.invalid", /finite number/],
      [{ "unet.lora_alpha": "" }, "model.invalid", /finite number/],
      [json({ "unet.lora_alpha": [5] }), "model.invalid", /finite number, received a list of 1/],
      [json({ "unet.lora_alpha": null }), "model.invalid", /finite number, received null/],
      [
        { "unet.lora_alpha": "4", ...json({ "unet.lora_alpha": 2 }) },
        "model.invalid",
        /expected "4", as the metadata has it too, received 2/,
      ],
      [
        { lora_adapter_metadata: "[" },
        "model.invalid",
        /lora_adapter_metadata of its metadata: expected a JSON object/,
      ],
      [{ lora_adapter_metadata: "x".repeat(2 ** 22 + 1) }, "model.invalid", /at most 4194304 characters/],
      [json({ "unet.alpha_pattern": [1] }), "model.invalid", /unet\.alpha_pattern of its metadata: expected an object/],
      [json({ "unet.alpha_pattern": { to_q: "x" } }), "model.invalid", /to_q of unet\.alpha_pattern/],
      [json({ "unet.alpha_pattern": { "(a+)+$": 1 } }), "model.unsupported", /received the pattern "\(a\+\)\+\$"/],
    ];
    for (const [metadata, code, pattern] of cases)
      await refuses(() => alphaInMetadata("x.safetensors", metadata), code, pattern);
  });
});

describe("metadataNote", () => {
  it("names kohya's alpha and rank if they differ and nothing applies them", () => {
    assert.match(
      metadataNote("k.safetensors", { ss_network_alpha: "4.0", ss_network_dim: "8" })!,
      /^LoRA "k\.safetensors": it has no alpha tensors, so its scale is 1 although .* ss_network_alpha "4\.0" and ss_network_dim "8"\.$/,
    );
    for (const [alpha, rank] of [
      ["network_alpha", "network_dim"],
      ["alpha", "rank"],
    ] as const)
      assert.match(
        metadataNote("k.safetensors", { [alpha]: "2", [rank]: "4" })!,
        new RegExp(`its metadata has ${alpha} "2" and ${rank} "4"\\.$`),
      );
    assert.equal(metadataNote("k.safetensors", { ss_network_alpha: "8.0", ss_network_dim: "8" }), undefined);
    assert.equal(metadataNote("k.safetensors", { ss_network_dim: "8" }), undefined);
    const both = { ss_network_alpha: "4", ss_network_dim: "8", "unet.lora_alpha": "4" };
    assert.equal(metadataNote("k.safetensors", both), undefined);
  });
});
