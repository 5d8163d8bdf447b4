import { describe, LatentkitError } from "../../../base/errors.js";
import type { Tensor } from "../../../tensor/tensor.js";
import type { FoundEmbedding } from "../../types.js";
import type { OnnxModel } from "../session/onnx-model.js";
import type { TextEncoderConfig, TextEncoderOptions } from "./build.js";
import type { EmbeddingRows } from "./embeddings.js";
import type { TextNetwork } from "./model.js";

/** Everything that an exported text encoder is made of. */
export interface ExportedTextEncoderSource {
  readonly name: TextEncoderConfig["name"];
  readonly model: OnnxModel;
  readonly rows: EmbeddingRows;
  /** Layer whose normalised output is `last_hidden_state`, as its family is trained. */
  readonly ownLayer: number;
}

const LENGTH = 77;
const LAST = "last_hidden_state";
const LAYER = "hidden_states.";

/** A text encoder exported to ONNX. */
export class ExportedTextEncoder implements TextNetwork {
  readonly name: TextEncoderConfig["name"];
  readonly #source: ExportedTextEncoderSource;

  constructor(source: ExportedTextEncoderSource) {
    this.#source = source;
    this.name = source.name;
  }

  /** Leaves textual inversions out: the model takes only ids. */
  embedding(word: string): FoundEmbedding {
    const { model, rows } = this.#source;
    const { ids, rest, warning } = rows.lookUp(word);
    const name = word.slice(0, word.length - rest.length);
    const isHere = `Embedding ${describe(name)} is ignored: ${model.label} is an exported ONNX model, which cannot take embeddings.`;
    return { ids: [], rest, warning: ids.length > 0 ? isHere : warning };
  }

  async encode(chunks: number[][], output: TextEncoderOptions): Promise<{ cond: Tensor; pooled?: Tensor }> {
    const { model } = this.#source;
    const { outputs } = await model.ports();
    const names = outputs.map(({ name }) => name);
    const context = this.#contextName(names, output);
    // an encoder with a projection has a projected pooled text
    const pooledName = ["text_embeds", "pooler_output"].find((name) => names.includes(name));
    const wanted = pooledName === undefined ? [context] : [context, pooledName];
    const ids = { int64: chunks.flat(), shape: [chunks.length, LENGTH] };
    const [cond, pooled] = await model.run({ input_ids: ids }, wanted, { isShared: true });
    if (pooled !== undefined) model.requireShape(pooled, [chunks.length, undefined]);
    return { cond: model.requireShape(cond!, [chunks.length, LENGTH, undefined]), pooled };
  }

  /** Name of the output that is the context. Fails with value.invalid for a layer that the export lacks. */
  #contextName(names: readonly string[], { layer, finalNorm }: TextEncoderOptions): string {
    const { model, ownLayer } = this.#source;
    if (finalNorm) {
      if (layer === ownLayer) return LAST;
      const message = `${model.label}: expected clip layer ${ownLayer}, received ${layer}: an export normalises only its last layer, so export it again with another num_hidden_layers in its config.json.`;
      throw new LatentkitError("value.invalid", message);
    }
    // the first is that of the embeddings
    const count = names.filter((name) => name.startsWith(LAYER)).length;
    if (count > 0 && -layer >= count) return LAST;
    const name = `${LAYER}${count + layer}`;
    if (count > 0 && names.includes(name)) return name;
    const message = `${model.label} has no output ${describe(`${LAYER}N`)}, which clip layer ${layer} needs: export it again with output_hidden_states.`;
    throw new LatentkitError("value.invalid", message);
  }
}
