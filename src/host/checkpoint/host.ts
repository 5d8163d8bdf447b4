import { readValues } from "./weights/values.js";
import { openModelFile } from "./recognition/open.js";
import { recogniseCheckpoint } from "./recognition/recognise.js";
