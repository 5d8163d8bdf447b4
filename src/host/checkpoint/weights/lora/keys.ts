/** Part of a tensor in the change of a layer, in the words of kohya and LyCORIS. */
export type TensorRole =
  | "alpha"
  | "up"
  | "down"
  | "mid"
  | `hada_${"w1_a" | "w1_b" | "w2_a" | "w2_b" | "t1" | "t2"}`
  | `lokr_${"w1" | "w1_a" | "w1_b" | "w2" | "w2_a" | "w2_b" | "t2"}`
  | "dora_scale"
  | "diff"
  | "diff_b"
  | "w_norm"
  | "b_norm"
  /** The whole weight, whatever the strength. */
  | "replacement";

/** Ends of keys: what is before one is the layer in the names of the file's style. */
const ENDINGS: readonly (readonly [ending: string, role: TensorRole])[] = [
  // kohya
  [".lora_up.weight", "up"],
  [".lora_down.weight", "down"],
  [".lora_mid.weight", "mid"],
  // diffusers before PEFT
  [".lora_linear_layer.up.weight", "up"],
  [".lora_linear_layer.down.weight", "down"],
  ["_lora.up.weight", "up"],
  ["_lora.down.weight", "down"],
  // PEFT, and PEFT inside diffusers
  [".lora_B.weight", "up"],
  [".lora_A.weight", "down"],
  [".lora_B", "up"],
  [".lora_A", "down"],
  [".lora.up.weight", "up"],
  [".lora.down.weight", "down"],
  [".lora_magnitude_vector", "dora_scale"],
  [".lora_magnitude_vector.weight", "dora_scale"],
  // the roles that are called alike everywhere
  ...(
    [
      ...["alpha", "dora_scale", "diff", "diff_b", "w_norm", "b_norm"],
      ...["w1_a", "w1_b", "w2_a", "w2_b", "t1", "t2"].map((name) => `hada_${name}`),
      ...["w1", "w1_a", "w1_b", "w2", "w2_a", "w2_b", "t2"].map((name) => `lokr_${name}`),
    ] as TensorRole[]
  ).map((role) => [`.${role}`, role] as const),
];

/** PEFT with the name of an adapter, which is `default` if none is given. */
const OF_ADAPTER = /^(.+)\.lora_(A|B|magnitude_vector)\.([^.]+)\.weight$/;
const PEFT_ROLES = { A: "down", B: "up", magnitude_vector: "dora_scale" } as const;

/** Meaning of a key of a LoRA file. */
export interface LoraKey {
  readonly module: string;
  readonly role: TensorRole;
  /** Name of PEFT's adapter, if the key has one. */
  readonly adapter?: string;
}

/** Layer and role of a tensor by its key; undefined for keys of no known form. */
export function readKey(key: string): LoraKey | undefined {
  const found = ENDINGS.find(([ending]) => key.length > ending.length && key.endsWith(ending));
  if (found !== undefined) return { module: key.slice(0, -found[0].length), role: found[1] };
  const [, module, part, adapter] = OF_ADAPTER.exec(key) ?? [];
  if (module === undefined) return undefined;
  return { module, role: PEFT_ROLES[part as keyof typeof PEFT_ROLES], adapter };
}
