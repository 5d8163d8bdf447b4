import assert from "node:assert/strict";
import { levelsOfDiffusers, levelsOfLdm, renaming, unetModules } from "#src/host/checkpoint/weights/diffusers-names.js";
import { type FullSizeFamily, fullSizePart } from "../../../../helpers/models/full-size.js";

const PREFIX = "model.diffusion_model.";

/** UNet keys of a full-size file, without their prefix. */
const unetKeys = (family: FullSizeFamily): string[] => Object.keys(fullSizePart(family, PREFIX));

/** The name that diffusers has for a key, as far as the names differ. */
function diffusersNames(keys: readonly string[]): (key: string) => string | undefined {
  return renaming(unetModules(levelsOfLdm(keys)), 0);
}

const SD1 = {
  "time_embed.2.bias": "time_embedding.linear_2.bias",
  "input_blocks.0.0.weight": "conv_in.weight",
  "input_blocks.1.0.in_layers.2.weight": "down_blocks.0.resnets.0.conv1.weight",
  "input_blocks.2.1.proj_in.weight": "down_blocks.0.attentions.1.proj_in.weight",
  "input_blocks.3.0.op.bias": "down_blocks.0.downsamplers.0.conv.bias",
  "input_blocks.8.1.transformer_blocks.0.ff.net.0.proj.weight":
    "down_blocks.2.attentions.1.transformer_blocks.0.ff.net.0.proj.weight",
  "input_blocks.11.0.emb_layers.1.weight": "down_blocks.3.resnets.1.time_emb_proj.weight",
  "middle_block.1.norm.weight": "mid_block.attentions.0.norm.weight",
  "middle_block.2.out_layers.0.weight": "mid_block.resnets.1.norm2.weight",
  "output_blocks.0.0.skip_connection.weight": "up_blocks.0.resnets.0.conv_shortcut.weight",
  "output_blocks.2.1.conv.weight": "up_blocks.0.upsamplers.0.conv.weight",
  "output_blocks.5.2.conv.weight": "up_blocks.1.upsamplers.0.conv.weight",
  "output_blocks.11.0.out_layers.3.weight": "up_blocks.3.resnets.2.conv2.weight",
  "out.0.weight": "conv_norm_out.weight",
  "out.2.bias": "conv_out.bias",
};

const SDXL = {
  "label_emb.0.2.weight": "add_embedding.linear_2.weight",
  "input_blocks.4.1.transformer_blocks.1.attn2.to_k.weight":
    "down_blocks.1.attentions.0.transformer_blocks.1.attn2.to_k.weight",
  "output_blocks.2.2.conv.weight": "up_blocks.0.upsamplers.0.conv.weight",
  "output_blocks.3.1.proj_in.weight": "up_blocks.1.attentions.0.proj_in.weight",
  "output_blocks.8.0.skip_connection.weight": "up_blocks.2.resnets.2.conv_shortcut.weight",
};

describe("diffusers' names of a UNet", () => {
  for (const family of ["sd1", "sd1_inpaint", "sd2", "sdxl", "sdxl_refiner"] as const) {
    it(`${family}: every key has one, and leads back from it`, () => {
      const keys = unetKeys(family);
      const toDiffusers = diffusersNames(keys);
      const names = keys.map((key) => toDiffusers(key) ?? assert.fail(key));
      assert.equal(new Set(names).size, keys.length);
      assert.deepEqual(levelsOfDiffusers(names), levelsOfLdm(keys));
      const toLdm = renaming(unetModules(levelsOfDiffusers(names)), 1);
      assert.deepEqual(names.map(toLdm), keys);
    });
  }

  it("equal those of the page on checkpoints", () => {
    for (const [family, examples] of [
      ["sd1", SD1],
      ["sdxl", SDXL],
    ] as const) {
      const keys = unetKeys(family);
      const toDiffusers = diffusersNames(keys);
      for (const [ldm, name] of Object.entries(examples)) {
        assert.ok(keys.includes(ldm), ldm);
        assert.equal(toDiffusers(ldm), name);
      }
    }
  });

  it("follow levels with one res block, and with different numbers of them", () => {
    const toLdm = renaming(unetModules({ down: [1, 3], up: [{ blocks: 4, upsampler: 2 }, { blocks: 2 }] }), 1);
    assert.equal(toLdm("down_blocks.0.downsamplers.0.conv.weight"), "input_blocks.2.0.op.weight");
    assert.equal(toLdm("down_blocks.1.resnets.2.norm1.weight"), "input_blocks.5.0.in_layers.0.weight");
    assert.equal(toLdm("up_blocks.0.upsamplers.0.conv.bias"), "output_blocks.3.2.conv.bias");
    assert.equal(toLdm("up_blocks.1.attentions.1.norm.bias"), "output_blocks.5.1.norm.bias");
  });

  it("of a ControlNet are known", () => {
    const toLdm = renaming(unetModules({ down: [2, 2, 2, 2], up: [] }), 1);
    assert.equal(toLdm("controlnet_cond_embedding.conv_in.weight"), "input_hint_block.0.weight");
    assert.equal(toLdm("controlnet_cond_embedding.blocks.0.weight"), "input_hint_block.2.weight");
    assert.equal(toLdm("controlnet_cond_embedding.blocks.5.bias"), "input_hint_block.12.bias");
    assert.equal(toLdm("controlnet_cond_embedding.conv_out.bias"), "input_hint_block.14.bias");
    assert.equal(toLdm("controlnet_down_blocks.11.weight"), "zero_convs.11.0.weight");
    assert.equal(toLdm("controlnet_down_blocks.12.weight"), undefined);
    assert.equal(toLdm("controlnet_mid_block.weight"), "middle_block_out.0.weight");
  });

  it("are none for foreign keys", () => {
    const toLdm = renaming(unetModules({ down: [2], up: [] }), 1);
    const foreign = ["", ".", "conv_input.weight", "__proto__.weight", "down_blocks.1.resnets.0.norm1.weight"];
    for (const key of foreign) assert.equal(toLdm(key), undefined, key);
    assert.equal(toLdm("conv_in"), "input_blocks.0.0");
    assert.equal(toLdm(`a${".".repeat(1_000_000)}`), undefined);
  });

  it("with numbers that no UNet has count for nothing", () => {
    const resnet = (level: string, index: string) => `down_blocks.${level}.resnets.${index}.norm1.weight`;
    const keys = [resnet("0", "0"), resnet("0", "2"), resnet("01", "0"), resnet("2", "0"), resnet("999999999", "0")];
    assert.deepEqual(levelsOfDiffusers(keys), { down: [1], up: [] });
    assert.deepEqual(levelsOfLdm(["input_blocks.1e3.0.op.weight", "input_blocks.2.0.op.weight"]), {
      down: [0],
      up: [],
    });
  });
});
