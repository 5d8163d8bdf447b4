import { LatentkitError } from "../../../base/errors.js";
import { parsePrompt } from "../../prompt/parse.js";
import { tokenGroups } from "../../prompt/tokenize.js";
import { type EncoderSize, isOfClip } from "../families/clip-types.js";
import type { ModelFolders } from "../files/model-folders.js";
import { embeddingProblems, findEmbedding, leftOut, noSuchEmbedding } from "../text-encoder/embeddings.js";

/**
 * Sentences on the embeddings of a prompt that no file has the name of or that do not fit the encoders, and errors of those
 * that fail a run, each once.
 */
export function promptWarnings(
  prompt: string,
  folders: ModelFolders,
  encoders: readonly EncoderSize[],
): (string | LatentkitError)[] {
  const sentences = new Map<string, string | LatentkitError>();
  for (const word of new Set(embeddingsOf(prompt))) {
    try {
      const { file, name } = findEmbedding(folders, word);
      if (file === undefined) sentences.set(name, noSuchEmbedding(folders, name));
      else
        for (const problem of embeddingProblems(file, encoders.filter(isOfClip)))
          sentences.set(problem, leftOut(file, problem));
    } catch (error) {
      if (!(error instanceof LatentkitError)) throw error;
      sentences.set(error.message, error);
    }
  }
  return [...sentences.values()];
}

/** The words after "embedding:" in a prompt. */
export function embeddingsOf(prompt: string): string[] {
  const words: string[] = [];
  const embedding = (word: string) => {
    words.push(word);
    return { ids: [], rest: "" };
  };
  for (const [text] of parsePrompt(prompt)) tokenGroups(text, { name: "of words", tokenize: () => [], embedding });
  return words;
}
