import { LatentkitError } from "../../../base/errors.js";
import { quotedName } from "../weights/stored.js";

/** The error of a file that is no damaged one but another one than expected. */
export const unsupported = (name: string, expected: string, received: string): LatentkitError =>
  new LatentkitError("model.unsupported", `Model ${quotedName(name)}: expected ${expected}, received ${received}.`, {
    expected,
    received,
  });

/** The error of a file whose weights are damaged or contradict each other. */
export const invalid = (name: string, expected: string, received: string): LatentkitError =>
  new LatentkitError("model.invalid", `Model ${quotedName(name)}: expected ${expected}, received ${received}.`, {
    expected,
    received,
  });
