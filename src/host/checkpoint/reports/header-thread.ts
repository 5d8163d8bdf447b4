import { parentPort, workerData } from "node:worker_threads";
import type { ErrorCode, ErrorDetails } from "../../../base/errors.js";
import type { ModelFile } from "../files/model-folders.js";
import { type FileFacts, factsOf } from "./file-facts.js";
import { describeFile, type ListedModel, refusedFile } from "./list-models.js";

/** A model file as a thread has read it; an error travels as its parts. */
export interface SentRead extends Omit<FileFacts, "refusal"> {
  readonly listed: ListedModel;
  readonly refusal:
    | { readonly family: string; readonly format?: string }
    | { readonly code: ErrorCode; readonly message: string; readonly details: ErrorDetails }
    | undefined;
}

// In a worker thread: a hostile header takes neither time of the caller's event loop nor memory of its heap.
for (const file of workerData as readonly ModelFile[]) parentPort!.postMessage(await readOf(file));

async function readOf(file: ModelFile): Promise<SentRead> {
  const { refusal, ...facts } = factsOf(file.kind, file, "whole");
  const error = refusal !== undefined && "error" in refusal ? refusal.error : undefined;
  // a broken header is not read again: that would take as long, and as much memory, as the worst ones
  const listed =
    error?.code === "safetensors.invalid" ? await refusedFile(file, error.message) : await describeFile(file);
  if (error === undefined) return { listed, refusal: refusal as SentRead["refusal"], ...facts };
  const { code, message, details } = error;
  return { listed, refusal: { code, message, details }, ...facts };
}
