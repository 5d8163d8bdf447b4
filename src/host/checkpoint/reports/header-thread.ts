import { parentPort, workerData } from "node:worker_threads";
import type { ErrorCode, ErrorDetails } from "../../../base/errors.js";
import type { ModelFile } from "../files/model-folders.js";
import { type FileFacts, factsOf } from "./file-facts.js";
import { describeFile, type ListedModel } from "./list-models.js";

/** A model file as a thread has read it; an error travels as its parts. */
export interface SentRead {
  readonly listed: ListedModel;
  readonly encoders: FileFacts["encoders"];
  readonly refusal:
    | { readonly family: string; readonly format?: string }
    | { readonly code: ErrorCode; readonly message: string; readonly details: ErrorDetails }
    | undefined;
}

// In a worker thread: a hostile header costs the calling process no turn of its event loop, and no memory of its own.
for (const file of workerData as readonly ModelFile[]) parentPort!.postMessage(await readOf(file));

async function readOf(file: ModelFile): Promise<SentRead> {
  const listed = await describeFile(file);
  const { refusal, encoders } = factsOf(file.kind, file, "whole");
  if (refusal === undefined || "family" in refusal) return { listed, refusal, encoders };
  const { code, message, details } = refusal.error;
  return { listed, refusal: { code, message, details }, encoders };
}
