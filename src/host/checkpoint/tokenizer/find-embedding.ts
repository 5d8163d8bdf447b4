import { describe } from "../../../base/errors.js";
import type { ModelFile, ModelFolders } from "../files/model-folders.js";
import { nearest } from "../files/nearest.js";

/** Endings that a name may lack, in the order in which they are tried. */
const ENDINGS = ["", ".safetensors", ".pt", ".bin"];

/**
 * Finds the file that the word after "embedding:" names, with or without its ending; with commas that end the word, else
 * without them. `name` is the part of the word that is the name. Throws path.outside for a name that leads out of the
 * embeddings' folders.
 */
export function findEmbedding(
  folders: ModelFolders,
  word: string,
): { readonly file: ModelFile | undefined; readonly name: string } {
  const bare = withoutCommas(word);
  for (const name of bare === word ? [word] : [word, bare]) {
    for (const ending of ENDINGS) {
      const file = folders.find("embeddings", name + ending);
      if (file !== undefined) return { file, name };
    }
  }
  return { file: undefined, name: bare };
}

/** Sentence on an embedding that no file has the name of. */
export function noSuchEmbedding(folders: ModelFolders, name: string): string {
  const [near] = nearest(name, folders.list("embeddings"));
  const hint = near === undefined ? "" : ` Did you mean ${describe(near)}?`;
  return `Embedding ${describe(name)} is left out: there is no such file in the embeddings' folders.${hint}`;
}

function withoutCommas(word: string): string {
  let end = word.length;
  while (end > 0 && word[end - 1] === ",") end--;
  return word.slice(0, end);
}
