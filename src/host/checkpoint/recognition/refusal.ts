import { basename } from "node:path";
import { describe, LatentkitError } from "../../../base/errors.js";

/** Name of a model file in a message. */
const modelName = (path: string): string => `Model ${describe(basename(path))}`;

/** The error of a file that is no damaged one but another one than expected. */
export const unsupported = (path: string, expected: string, received: string): LatentkitError =>
  new LatentkitError("model.unsupported", `${modelName(path)}: expected ${expected}, received ${received}.`, {
    expected,
    received,
  });

/** The error of a file whose weights are damaged or contradict each other. */
export const invalid = (path: string, expected: string, received: string): LatentkitError =>
  new LatentkitError("model.invalid", `${modelName(path)}: expected ${expected}, received ${received}.`, {
    expected,
    received,
  });
