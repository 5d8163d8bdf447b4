import { MOST_MODELS_BYTES, NETWORK_DEVICES } from "../../host/checkpoint/runtime/session-options.js";
import { bytes, choice, flag, list, pairs, text, texts } from "./option.js";

/** Options of commands that list models. */
export const modelOptions = {
  models: texts("DIR", "ComfyUI's models folder, or an extra_model_paths.yaml"),
};

/** Options of commands that run networks. */
export const networkOptions = {
  ...modelOptions,
  "models-device": choice("DEVICE", "where networks run", NETWORK_DEVICES, {
    absent: "a GPU that doctor or auto has found good, else cpu",
  }),
  "models-memory": bytes("BYTES", "memory for their weights, such as 6GB; on a GPU, its own memory", MOST_MODELS_BYTES),
};

export const config = text("FILE", "configuration, YAML or JSON");
export const input = text("DIR", "folder of the input images", { absent: "input beside the graph, else ./input" });
export const device = text("DEVICE", "device for tensors: auto, cpu or cuda:N", { absent: "auto" });
export const offline = flag("refuse graphs whose nodes use the network or a key");
export const alias = pairs("OLD=NEW", "run nodes of class OLD (or of prefix OLD) as NEW");
export const targets = list("IDS", "nodes to compute, separated by commas", { absent: "the graph's output nodes" });
