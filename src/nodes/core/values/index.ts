import { markdownNote } from "./markdown-note.js";
import { note } from "./note.js";
import { previewAny } from "./preview-any.js";
import { primitiveBoolean } from "./primitive-boolean.js";
import { primitiveFloat } from "./primitive-float.js";
import { primitiveInt } from "./primitive-int.js";
import { primitiveNode } from "./primitive-node.js";
import { primitiveString } from "./primitive-string.js";
import { primitiveStringMultiline } from "./primitive-string-multiline.js";
import { reroute } from "./reroute.js";
import { stringConcatenate } from "./string-concatenate.js";

export const valueNodes = [
  markdownNote,
  note,
  primitiveBoolean,
  primitiveFloat,
  primitiveInt,
  primitiveNode,
  primitiveString,
  primitiveStringMultiline,
  reroute,
  previewAny,
  stringConcatenate,
] as const;
