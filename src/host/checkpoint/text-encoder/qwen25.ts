import { describe, LatentkitError } from "../../../base/errors.js";
import { joined, narrowed } from "../../../tensor/parts.js";
import { Tensor } from "../../../tensor/tensor.js";
import { withoutEmbeddings } from "../../prompt/tokenize.js";
import type { Clip, Conditioning } from "../../types.js";
import { causalMask } from "../networks/layers.js";
import { type Position, sectionedTables } from "../networks/sinusoids.js";
import type { ModelPart } from "../session/model-part.js";
import type { Runtime } from "../session/runtime.js";
import { IMAGE_PAD, idsBeforeUser, tokenizeQwenImage } from "../tokenizer/qwen.js";
import { pictureRows, type QwenVisionConfig, type SeenPicture, seenPicture } from "./qwen-vision.js";
import { buildQwen3, MOST_TOKENS, type Qwen3Config, qwen3Work, THETA } from "./qwen3.js";

/** Name that nodes have for a text for this encoder. */
const NAME = "qwen25_7b";
/** Shares of time, row and column in the pairs of a head. */
const SECTIONS = [2, 3, 3];
const SHARES = SECTIONS.reduce((sum, share) => sum + share, 0);

/** The clip of Qwen-Image: a Qwen2.5-VL language model, which reads a prompt whole and sees pictures in it. */
export class Qwen25Clip implements Clip {
  readonly encoders = [];

  constructor(
    readonly runtime: Runtime,
    readonly part: ModelPart<Qwen3Config>,
    /** Sees pictures; absent in files without one. */
    readonly tower?: ModelPart<QwenVisionConfig>,
  ) {}

  encodeText(text: string): Promise<Conditioning> {
    return this.#encode(text, "image", []);
  }

  /** Encodes a text with a picture at each `<|image_pad|>` of it. Fails with value.invalid for other encoders. */
  async encodeTexts(texts: Readonly<Record<string, string>>, pictures: readonly Tensor[]): Promise<Conditioning> {
    const text = Object.hasOwn(texts, NAME) ? texts[NAME] : undefined;
    if (text !== undefined && Object.keys(texts).length === 1) return this.#encode(text, "edit", pictures);
    const received = Object.keys(texts).map(describe).join(", ");
    const message = `Prompt: expected a text for Qwen-Image's encoder, ${NAME}, received ${received}.`;
    throw new LatentkitError("value.invalid", message);
  }

  async #encode(text: string, system: "image" | "edit", pictures: readonly Tensor[]): Promise<Conditioning> {
    const { label, config } = this.part;
    const ids = tokenizeQwenImage(withoutEmbeddings(text).replace(/\\([()])/g, "$1"), system);
    const seen = pictures.map(seenPicture);
    const { order, positions } = sequenceOf(
      ids,
      seen.map(({ units }) => units),
    );
    const { length } = order;
    if (length > MOST_TOKENS) {
      const message = `${label}: expected a prompt of at most ${MOST_TOKENS} tokens, received ${length}: ${describe(text)}.`;
      throw new LatentkitError("value.out-of-range", message);
    }
    const rows = await this.#rowsOf(seen);
    const pairs = config.headSize / 2;
    const sections = SECTIONS.map((share) => (share * pairs) / SHARES);
    const { cos, sin } = sectionedTables(positions, sections, THETA);
    const feeds = {
      tokens: { int64: ids, shape: [1, ids.length] },
      // a graph without pictures does not read the row
      pictures: rows.length === 0 ? Tensor.zeros([1, config.hidden]) : joined(rows, 0),
      order: { int64: order, shape: [length] },
      mask: Tensor.from(causalMask(length), [1, 1, length, length]),
      text_cos: cos,
      text_sin: sin,
    };
    const work = qwen3Work(config, "order");
    const session = this.part.session("text encoder Qwen2.5-VL", (network) => buildQwen3(network, config), { work });
    const { cond } = await this.runtime.run(session, feeds, { isShared: true });
    const dropped = idsBeforeUser(ids);
    return [[narrowed(cond!, 1, dropped, length - dropped), {}]];
  }

  async #rowsOf(pictures: readonly SeenPicture[]): Promise<Tensor[]> {
    const { tower: part, runtime } = this;
    const rows: Tensor[] = [];
    for (const picture of pictures) {
      if (part === undefined) {
        const message = `${this.part.label} has no vision tower, which sees the pictures of a prompt: load a file with one.`;
        throw new LatentkitError("model.invalid", message);
      }
      rows.push(await pictureRows(picture, { part, runtime }));
    }
    return rows;
  }
}

/** A prompt with its pictures, as the language model reads it. */
interface Sequence {
  /** Rows of the sequence in the list of the ids and then of all pictures' units. */
  readonly order: number[];
  /** Place of each row in time, its row and its column. */
  readonly positions: readonly Position[];
}

/**
 * Puts pictures of so many rows and columns of units in the places for them, the first ones. Throws value.invalid for a prompt
 * with fewer places.
 *
 * @internal
 */
export function sequenceOf(
  ids: readonly number[],
  pictures: readonly (readonly [rows: number, columns: number])[],
): Sequence {
  const order: number[] = [];
  const positions: Position[] = [];
  const waiting = [...pictures];
  let [next, unit] = [0, ids.length];
  for (const [index, id] of ids.entries()) {
    const picture = id === IMAGE_PAD ? waiting.shift() : undefined;
    if (picture === undefined) {
      order.push(index);
      positions.push([next, next, next]);
      next++;
      continue;
    }
    const [rows, columns] = picture;
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns; column++) {
        order.push(unit++);
        positions.push([next, next + row, next + column]);
      }
    next += Math.max(rows, columns);
  }
  if (waiting.length === 0) return { order, positions };
  const message = `Qwen prompt: expected <|image_pad|> for each of ${pictures.length} pictures, received ${pictures.length - waiting.length}.`;
  throw new LatentkitError("value.invalid", message);
}
