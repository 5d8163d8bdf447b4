import { hypernetworkLoader } from "./hypernetwork-loader.js";
import { loraLoader } from "./lora-loader.js";
import { loraLoaderModelOnly } from "./lora-loader-model-only.js";

export const adapterNodes = [loraLoader, loraLoaderModelOnly, hypernetworkLoader] as const;
