import { checkOptions, isObject, type OptionRules, type Rule } from "../../base/options.js";
import { MODELS_RULE } from "./files/kinds.js";
import { RUNTIME_RULES, type RuntimeOptions } from "./session/runtime.js";

// decisions: Threads share one runtime and take turns
/** Models as plain data: a folder of files, and how their networks run. Threads that render share one process for them. */
export interface ModelSettings {
  /** ComfyUI's `models` folder, or several, or files `extra_model_paths.yaml`. */
  readonly folders: string | readonly string[];
  /**
   * Where networks run: a provider of ONNX Runtime, or "auto" for the first one that computes correctly here and is faster than
   * the CPU. If absent: a provider that an earlier trial found to be so, else the CPU.
   */
  readonly device?: NonNullable<RuntimeOptions["device"]>;
  /** Threads of the runtime; one for each core if absent. */
  readonly threads?: number;
  /** Bytes of weights that stay loaded, on a GPU in its memory; as much as is free if absent. */
  readonly memory?: number;
  /**
   * Way to hold weights: "fold" converts them to float32 once; "stream", on the CPU, reads them from the file in every call
   * and takes the least memory; "keep", on a GPU with 16-bit floats, holds them as F16 and converts them in every call; chosen for each network if absent.
   */
  readonly plan?: NonNullable<RuntimeOptions["plan"]>;
}

const { device, threads, memory, plan } = RUNTIME_RULES;
const SETTINGS_RULES: OptionRules<ModelSettings> = { folders: MODELS_RULE, device, threads, memory, plan };

/** Rule of the option `models`. */
export const MODEL_SETTINGS: Rule = ["an object with the property folders", isObject];

/** Throws usage.invalid for wrong settings of models. */
export const checkModelSettings = (settings: ModelSettings): void =>
  checkOptions("models", settings, SETTINGS_RULES, ["folders"]);
