import { LatentkitError } from "../../base/errors.js";
import type { Host } from "../host.js";
import { parsePrompt } from "../prompt/parse.js";
import { tokenGroups } from "../prompt/tokenize.js";
import { type EncoderSize, isOfClip } from "./families/clip-types.js";
import { LOADABLE } from "./files/kinds.js";
import { ModelFolders } from "./files/model-folders.js";
import { misfitOf } from "./reports/misfits.js";
import { FileRefusals } from "./reports/refusals.js";
import { checkModelSettings, type ModelSettings } from "./settings.js";
import { embeddingProblems, findEmbedding, leftOut, noSuchEmbedding } from "./text-encoder/embeddings.js";

type Listing = Omit<Host, "loadCheckpoint">;

/** Part of a host that loads nothing: names of model files, and why one cannot be loaded. */
export function listedBy(folders: ModelFolders): Listing {
  const refusals = new FileRefusals(folders);
  return {
    name: "checkpoint",
    preview: false,
    checkpoints: () => refusals.offered("checkpoints"),
    files: (kind) => (LOADABLE.some((loadable) => loadable === kind) ? refusals.offered(kind) : undefined),
    fileOf: (kind, name) => folders.find(kind, name)?.name,
    refusal: (kind, name, settings) => refusals.of(kind, name, { type: settings?.type }),
    familyOf: (kind, name) => refusals.facts(kind, name).family,
    misfit: (taker, given) => misfitOf(taker, given, refusals),
    refresh: () => refusals.refresh(),
    promptWarnings: (text, models) => {
      const encoders = models.flatMap(({ kind, name }) => refusals.facts(kind, name).encoders ?? []);
      return promptWarnings(text, folders, encoders);
    },
  };
}

const ABILITIES: Host["abilities"] = ["texts"];

/** Declares the further abilities of a host of checkpoints; a copy of the host does not inherit them. */
export const withAbilities = <Made extends Host>(host: Made): Made =>
  Object.freeze(Object.defineProperty(host, "abilities", { value: ABILITIES }));

/**
 * Makes a host that lists and checks model files for those that render elsewhere. It does not load them. Throws usage.invalid, and
 * config.invalid for folders that do not exist.
 */
export function createListingHost(settings: ModelSettings): Host {
  checkModelSettings(settings);
  const loadCheckpoint = async () => {
    throw new LatentkitError(
      "host.missing",
      `host "checkpoint" only lists models here: the threads that render load them.`,
    );
  };
  return withAbilities({ ...listedBy(new ModelFolders(settings.folders)), loadCheckpoint });
}

const NONE_TAKEN = "only CLIP's text encoders take embeddings";

/**
 * Sentences on the embeddings of a prompt that no file has the name of or that do not fit the encoders, and errors of those
 * that fail a run, each once.
 */
function promptWarnings(
  prompt: string,
  folders: ModelFolders,
  encoders: readonly EncoderSize[],
): (string | LatentkitError)[] {
  const sentences = new Map<string, string | LatentkitError>();
  const ofClip = encoders.filter(isOfClip);
  // those of Qwen read parentheses as they are
  const isPlain = encoders.length > 0 && encoders.every((encoder) => !isOfClip(encoder) && encoder.name !== "t5");
  for (const word of new Set(embeddingsOf(prompt, isPlain))) {
    try {
      const { file, name } = findEmbedding(folders, word);
      if (file === undefined) sentences.set(name, noSuchEmbedding(folders, name));
      else if (encoders.length > 0 && ofClip.length === 0) sentences.set(name, leftOut(file, NONE_TAKEN));
      else for (const problem of embeddingProblems(file, ofClip)) sentences.set(problem, leftOut(file, problem));
    } catch (error) {
      if (!(error instanceof LatentkitError)) throw error;
      sentences.set(error.message, error);
    }
  }
  return [...sentences.values()];
}

/** The words after "embedding:" in a prompt, `isPlain` in one whose parentheses set no weights. */
export function embeddingsOf(prompt: string, isPlain = false): string[] {
  const words: string[] = [];
  const embedding = (word: string) => {
    words.push(word);
    return { ids: [], rest: "" };
  };
  const texts = isPlain ? [prompt] : parsePrompt(prompt).map(([text]) => text);
  for (const text of texts) tokenGroups(text, { name: "of words", tokenize: () => [], embedding });
  return words;
}
