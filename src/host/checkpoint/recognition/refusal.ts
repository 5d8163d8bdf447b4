import { LatentkitError } from "../../../base/errors.js";
import { quotedName } from "../weights/stored.js";

/** Families that run here, in the sentences of refusals. */
export const OWN_FAMILIES = "SD 1, SD 2, SDXL or Z-Image";

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
