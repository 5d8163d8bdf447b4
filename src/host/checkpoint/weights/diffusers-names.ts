/** Res blocks of each level in the order in which they run: the numbers in LDM names count through all levels. */
export interface UnetLevels {
  readonly down: readonly number[];
  readonly up: readonly UpLevel[];
}

export interface UpLevel {
  readonly blocks: number;
  /** Place of the upsampler in the level's last LDM block: 2 after a transformer, else 1. Absent: the level has none. */
  readonly upsampler?: 1 | 2;
}

/** LDM and diffusers name of one module; the rest of a key is equal in both. */
export type ModuleNames = readonly [ldm: string, diffusers: string];

/** Layers inside a res block. */
const RES_BLOCK: readonly ModuleNames[] = [
  ["in_layers.0", "norm1"],
  ["in_layers.2", "conv1"],
  ["emb_layers.1", "time_emb_proj"],
  ["out_layers.0", "norm2"],
  ["out_layers.3", "conv2"],
  ["skip_connection", "conv_shortcut"],
];

const AROUND_BLOCKS: readonly ModuleNames[] = [
  ["time_embed.0", "time_embedding.linear_1"],
  ["time_embed.2", "time_embedding.linear_2"],
  ["label_emb.0.0", "add_embedding.linear_1"],
  ["label_emb.0.2", "add_embedding.linear_2"],
  ["input_blocks.0.0", "conv_in"],
  ["out.0", "conv_norm_out"],
  ["out.2", "conv_out"],
];

/** Parts of the longest names, such as `input_blocks.1.0.in_layers.0`. */
const MOST_PARTS = 5;

/** Convolutions of a ControlNet's hint: the first, six that alternate in stride, the last. */
const HINT_BLOCKS = 6;

/** A number in a name. No UNet has a hundred levels or blocks, so that foreign names cannot ask for more. */
const isIndex = (part: string | undefined): part is string => part !== undefined && /^(?:0|[1-9]\d?)$/.test(part);

/** Levels of a UNet or ControlNet by its keys in diffusers' names. Numbers count from 0; modules after a gap are not seen. */
export function levelsOfDiffusers(keys: Iterable<string>): UnetLevels {
  const modules = new Set<string>();
  for (const key of keys) {
    const [side, level, list, index] = key.split(".", 4);
    if (isIndex(level) && isIndex(index)) modules.add(`${side}.${level}.${list}.${index}`);
  }
  const down = blocksOf("down_blocks", modules);
  const up = blocksOf("up_blocks", modules).map((blocks, level): UpLevel => {
    if (!modules.has(`up_blocks.${level}.upsamplers.0`)) return { blocks };
    return { blocks, upsampler: modules.has(`up_blocks.${level}.attentions.${blocks - 1}`) ? 2 : 1 };
  });
  return { down, up };
}

/** Levels of a UNet or ControlNet by its keys in LDM names. Numbers count from 0; modules after a gap are not seen. */
export function levelsOfLdm(keys: Iterable<string>): UnetLevels {
  const layers = new Set<string>();
  for (const key of keys) {
    const [side, block, index, layer] = key.split(".", 4);
    if (isIndex(block)) layers.add(`${side}.${block}.${index}.${layer}`);
  }
  const down = [0];
  for (let block = 1; ; block++) {
    if (layers.has(`input_blocks.${block}.0.op`)) down.push(0);
    else if (layers.has(`input_blocks.${block}.0.in_layers`)) down[down.length - 1]!++;
    else break;
  }
  const up: UpLevel[] = [];
  let blocks = 0;
  for (let block = 0; layers.has(`output_blocks.${block}.0.in_layers`); block++) {
    blocks++;
    const upsampler = ([1, 2] as const).find((index) => layers.has(`output_blocks.${block}.${index}.conv`));
    if (upsampler === undefined) continue;
    up.push({ blocks, upsampler });
    blocks = 0;
  }
  if (blocks > 0) up.push({ blocks });
  return { down, up };
}

/** Names of all modules of a UNet whose names differ, those of its ControlNet among them. */
export function unetModules({ down, up }: UnetLevels): readonly ModuleNames[] {
  const names: ModuleNames[] = [...AROUND_BLOCKS, ...hintModules()];
  const block = (ldm: string, diffusers: string, index: number) => {
    names.push(...resBlock(`${ldm}.0`, `${diffusers}.resnets.${index}`));
    names.push([`${ldm}.1`, `${diffusers}.attentions.${index}`]);
  };
  let number = 1;
  for (const [level, blocks] of down.entries()) {
    for (let i = 0; i < blocks; i++) block(`input_blocks.${number++}`, `down_blocks.${level}`, i);
    if (level < down.length - 1)
      names.push([`input_blocks.${number++}.0.op`, `down_blocks.${level}.downsamplers.0.conv`]);
  }
  // one zero convolution for each input block
  for (let i = 0; i < number; i++) names.push([`zero_convs.${i}.0`, `controlnet_down_blocks.${i}`]);
  names.push(...resBlock("middle_block.0", "mid_block.resnets.0"), ["middle_block.1", "mid_block.attentions.0"]);
  names.push(...resBlock("middle_block.2", "mid_block.resnets.1"), ["middle_block_out.0", "controlnet_mid_block"]);
  number = 0;
  for (const [level, { blocks, upsampler }] of up.entries()) {
    for (let i = 0; i < blocks; i++) block(`output_blocks.${number++}`, `up_blocks.${level}`, i);
    if (upsampler !== undefined)
      names.push([`output_blocks.${number - 1}.${upsampler}.conv`, `up_blocks.${level}.upsamplers.0.conv`]);
  }
  return names;
}

/**
 * Makes the function that replaces a module's name, alone or at the beginning of a key, by its other name. `from` is the
 * index of the known name in each pair: 1 leads from diffusers' names to LDM. It returns undefined if no module fits.
 */
export function renaming(names: readonly ModuleNames[], from: 0 | 1): (key: string) => string | undefined {
  const others = new Map(names.map((pair) => [pair[from], pair[1 - from]!]));
  return (key) => {
    const parts = key.split(".", MOST_PARTS + 1);
    // the longest first: an upsampler has the index of a transformer if the level has none
    for (let count = Math.min(parts.length, MOST_PARTS); count > 0; count--) {
      const name = parts.slice(0, count).join(".");
      const other = others.get(name);
      if (other !== undefined) return other + key.slice(name.length);
    }
    return undefined;
  };
}

const resBlock = (ldm: string, diffusers: string): ModuleNames[] =>
  RES_BLOCK.map(([inLdm, inDiffusers]) => [`${ldm}.${inLdm}`, `${diffusers}.${inDiffusers}`]);

function hintModules(): ModuleNames[] {
  const hint = "controlnet_cond_embedding";
  const names: ModuleNames[] = [["input_hint_block.0", `${hint}.conv_in`]];
  // every second layer is a SiLU
  for (let i = 0; i < HINT_BLOCKS; i++) names.push([`input_hint_block.${2 * i + 2}`, `${hint}.blocks.${i}`]);
  return [...names, [`input_hint_block.${2 * HINT_BLOCKS + 2}`, `${hint}.conv_out`]];
}

/** Res blocks of each level of one side. */
function blocksOf(side: string, modules: ReadonlySet<string>): number[] {
  const levels: number[] = [];
  for (;;) {
    let blocks = 0;
    while (modules.has(`${side}.${levels.length}.resnets.${blocks}`)) blocks++;
    if (blocks === 0) return levels;
    levels.push(blocks);
  }
}
