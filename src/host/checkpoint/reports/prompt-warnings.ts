import { LatentkitError } from "../../../base/errors.js";
import { parsePrompt } from "../../prompt/parse.js";
import { tokenGroups } from "../../prompt/token-groups.js";
import type { ModelFolders } from "../files/model-folders.js";
import { findEmbedding, noSuchEmbedding } from "../tokenizer/find-embedding.js";

/** Sentences on the embeddings of a prompt that no file has the name of, each once. */
export function promptWarnings(prompt: string, folders: ModelFolders): string[] {
  const sentences = new Set<string>();
  for (const word of new Set(embeddingsOf(prompt))) {
    try {
      const { file, name } = findEmbedding(folders, word);
      if (file === undefined) sentences.add(noSuchEmbedding(folders, name));
    } catch (error) {
      // a name that leads out of the folders fails when it is encoded
      if (!(error instanceof LatentkitError)) throw error;
    }
  }
  return [...sentences];
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
