import { checkpointLoaderSimple } from "./checkpoint-loader-simple.js";

export const loaderNodes = [checkpointLoaderSimple] as const;
