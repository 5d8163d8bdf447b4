import { statSync } from "node:fs";
import { describe, LatentkitError } from "../../../base/errors.js";
import { Tensor } from "../../../tensor/tensor.js";
import type { FoundEmbedding } from "../../types.js";
import type { ModelFile, ModelFolders } from "../files/model-folders.js";
import { leftOut, readEmbedding } from "./embedding-file.js";
import { findEmbedding, noSuchEmbedding } from "./find-embedding.js";

/** Bytes of rows in memory: more than the longest prompt has. The files least recently used go first. */
const MAX_BYTES = 2 ** 27;
/** Bytes that each file counts beside its values. */
const FILE_BYTES = 1024;
/** The encoder whose rows these are. */
export interface EmbeddingEncoder {
  /** "l", "g" or "h". */
  readonly name: string;
  /** Values of a token. */
  readonly width: number;
  /** Number of its own ids: those of rows follow. */
  readonly vocabulary: number;
}

/** Rows of one state of a file; none where `problem` says why the encoder has no use for them. */
interface Rows {
  readonly ids: readonly number[];
  readonly values: Float32Array;
  readonly problem?: string;
}

/**
 * Rows of textual inversions by the ids that stand for them in prompts. An id is never given twice, so a prompt that is
 * being encoded keeps its rows where a file changes meanwhile.
 */
export class EmbeddingRows {
  readonly #encoder: EmbeddingEncoder;
  readonly #folders: ModelFolders;
  /** By path and state of the file, the least recently used first. */
  readonly #files = new Map<string, Rows>();
  readonly #byId = new Map<number, Rows>();
  #bytes = 0;
  #nextId: number;

  constructor(encoder: EmbeddingEncoder, folders: ModelFolders) {
    this.#encoder = encoder;
    this.#folders = folders;
    this.#nextId = encoder.vocabulary;
  }

  /**
   * Looks up the word after "embedding:", as ClipEncoder does: the name of a file in the embeddings' folders, with or
   * without its ending; with commas that end it, else without them. Throws path.outside for a name that leads out of the
   * folders, model.unsupported for pickles, model.invalid for damaged files.
   */
  lookUp(word: string): FoundEmbedding {
    const { file, name } = findEmbedding(this.#folders, word);
    const rest = word.slice(name.length);
    if (file === undefined) return { ids: [], rest, warning: noSuchEmbedding(this.#folders, name) };
    const { ids, problem } = this.#rowsOf(file);
    return { ids, rest, warning: problem && leftOut(file, problem) };
  }

  /**
   * Inputs of the text encoder for chunks of ids: those of rows number the rows of `embeddings` [rows, width] from the
   * vocabulary's size on; one row of zeros where there are none.
   */
  feed(chunks: readonly (readonly number[])[]): { tokens: number[][]; embeddings: Tensor } {
    const { vocabulary, width } = this.#encoder;
    const places = new Map<number, number>();
    const tokens = chunks.map((ids) =>
      ids.map((id) => {
        if (id < vocabulary) return id;
        const place = places.get(id) ?? places.size;
        places.set(id, place);
        return vocabulary + place;
      }),
    );
    const embeddings = Tensor.zeros([Math.max(1, places.size), width]);
    for (const [id, place] of places) embeddings.data.set(this.#rowOf(id), place * width);
    return { tokens, embeddings };
  }

  #rowOf(id: number): Float32Array {
    const rows = this.#byId.get(id);
    if (rows === undefined) {
      const message = `Clip encoder ${describe(this.#encoder.name)}: expected ids of its vocabulary and of embeddings, received ${id}.`;
      throw new LatentkitError("value.invalid", message);
    }
    const from = (id - rows.ids[0]!) * this.#encoder.width;
    return rows.values.subarray(from, from + this.#encoder.width);
  }

  #rowsOf(file: ModelFile): Rows {
    const key = keyOf(file);
    const rows = this.#files.get(key) ?? this.#read(file);
    this.#files.delete(key);
    this.#files.set(key, rows);
    this.#evict();
    return rows;
  }

  #read(file: ModelFile): Rows {
    const read = readEmbedding(file, this.#encoder);
    const values = typeof read === "string" ? new Float32Array() : read;
    const first = this.#nextId;
    const ids = Array.from({ length: values.length / this.#encoder.width }, (_, row) => first + row);
    const rows: Rows = { ids, values, problem: typeof read === "string" ? read : undefined };
    this.#nextId += ids.length;
    for (const id of ids) this.#byId.set(id, rows);
    this.#bytes += bytesOf(rows);
    return rows;
  }

  #evict(): void {
    for (const [key, rows] of this.#files) {
      if (this.#bytes <= MAX_BYTES) return;
      this.#files.delete(key);
      this.#bytes -= bytesOf(rows);
      for (const id of rows.ids) this.#byId.delete(id);
    }
  }
}

const bytesOf = ({ values }: Rows): number => values.byteLength + FILE_BYTES;

/** Path and state of a file. */
function keyOf({ path }: ModelFile): string {
  try {
    const { size, mtimeNs, ino } = statSync(path, { bigint: true });
    return [path, size, mtimeNs, ino].map(String).join("\n");
  } catch {
    // reading it says why
    return path;
  }
}
