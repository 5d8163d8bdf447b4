import type { RawImage } from "../../io/png/png.js";
import { Canvas, charactersIn, textHeight, textWidth } from "./canvas.js";
import type { GridAxis } from "./grid-axes.js";
import { cut, wrapText } from "./labels.js";
import { BED, FAILED_BED, FAILED_INK, GROUND, INK, SOFT_INK } from "./page.js";
import type { Box } from "./thumbnail.js";

/** Cell without a picture, in words. */
export type EmptyCell = "failed" | "unreadable" | "missing";

/** Facts that a page's layout follows from. */
export interface GridPageFacts {
  readonly title: string;
  /** "cfg 7" of the page's own axis and value; "" where there is one page. */
  readonly subtitle: string;
  readonly rows: GridAxis;
  readonly columns: GridAxis | undefined;
  readonly cell: Box;
}

const MARGIN = 28;
const GAP = 6;
const LINE_GAP = 5;
const LABEL_GAP = 10;
const LARGE = 2;
const SMALL = 1;
/** Narrower cells have small labels. */
const MIN_LARGE_CELL = 96;
const COLUMN_LINES = 3;
const SUBTITLE_LINES = 2;
const MAX_ROW_LABEL_WIDTH = 240;
const MIN_TITLE_CHARACTERS = 12;

/** A page of a grid that is drawn cell by cell: labels first, then pictures as they are read. */
export class GridPage {
  readonly canvas: Canvas;
  private readonly left: number;
  private readonly top: number;

  constructor(private readonly facts: GridPageFacts) {
    const { rows, columns, cell, title } = facts;
    const scale = scaleFor(columns?.labels ?? [], cell.width);
    const rowScale = scaleFor(rows.labels, cell.width < MIN_LARGE_CELL ? 0 : MAX_ROW_LABEL_WIDTH);
    const columnLabels = (columns?.labels ?? []).map((label) =>
      wrapText(label, charactersIn(cell.width, scale), COLUMN_LINES),
    );
    const rowLines = Math.max(1, Math.floor((cell.height + LINE_GAP) / (textHeight(rowScale) + LINE_GAP)));
    const rowLabels = rows.labels.map((label) =>
      wrapText(label, charactersIn(MAX_ROW_LABEL_WIDTH, rowScale), rowLines),
    );
    const rowName = wrapText(nameOf(rows), charactersIn(MAX_ROW_LABEL_WIDTH, LARGE), COLUMN_LINES);
    const labelWidth = Math.max(widest(rowLabels.flat(), rowScale), widest(rowName, LARGE));
    this.left = MARGIN + labelWidth + LABEL_GAP;
    const columnCount = Math.max(1, columnLabels.length);
    const gridWidth = columnCount * (cell.width + GAP) - GAP;
    const titleWidth = Math.min(textWidth(title, LARGE), textWidth("x".repeat(MIN_TITLE_CHARACTERS), LARGE));
    const width = Math.max(this.left + gridWidth, MARGIN + titleWidth) + MARGIN;
    const room = charactersIn(width - MARGIN * 2, LARGE);
    const subtitle = facts.subtitle === "" ? [] : wrapText(facts.subtitle, room, SUBTITLE_LINES);
    const heads = [cut(title, room), ...subtitle];
    const below = MARGIN + linesHeight(heads.length, LARGE) + LABEL_GAP * 2;
    const columnName =
      columns === undefined ? [] : wrapText(nameOf(columns), charactersIn(gridWidth, LARGE), COLUMN_LINES);
    const columnLines = Math.max(0, ...columnLabels.map(({ length }) => length));
    const names = linesHeight(columnName.length, LARGE) + (columnName.length > 0 ? LABEL_GAP : 0);
    const labelsHeight = Math.max(linesHeight(columnLines, scale), linesHeight(rowName.length, LARGE) - names);
    this.top = below + names + labelsHeight + LABEL_GAP;
    const height = this.top + rows.labels.length * (cell.height + GAP) - GAP + MARGIN;
    this.canvas = new Canvas(width, height, GROUND);
    this.lines(heads, MARGIN, MARGIN, LARGE, (at) => (at === 0 ? INK : SOFT_INK));
    this.centred(columnName, this.left, gridWidth, below, LARGE, SOFT_INK);
    this.lines(rowName, MARGIN, this.top - LABEL_GAP - linesHeight(rowName.length, LARGE), LARGE, () => SOFT_INK);
    for (const [i, lines] of columnLabels.entries()) {
      const y = this.top - LABEL_GAP - linesHeight(lines.length, scale);
      this.centred(lines, this.left + i * (cell.width + GAP), cell.width, y, scale, INK);
    }
    for (const [i, lines] of rowLabels.entries()) {
      const y = this.top + i * (cell.height + GAP) + ((cell.height - linesHeight(lines.length, rowScale)) >> 1);
      for (const [k, line] of lines.entries()) {
        const x = this.left - LABEL_GAP - textWidth(line, rowScale);
        this.canvas.text(line, x, y + k * (textHeight(rowScale) + LINE_GAP), rowScale, INK);
      }
    }
  }

  /** Draws a cell; `more`: pictures of it that are not shown. */
  draw(row: number, column: number, picture: RawImage | EmptyCell, more: number): void {
    const { canvas } = this;
    const { width, height } = this.facts.cell;
    const x = this.left + column * (width + GAP);
    const y = this.top + row * (height + GAP);
    if (typeof picture === "string") {
      this.drawEmpty(picture, x, y);
    } else {
      if (picture.width < width || picture.height < height) canvas.fill(x, y, width, height, BED);
      canvas.draw(picture, x + ((width - picture.width) >> 1), y + ((height - picture.height) >> 1));
    }
    if (more === 0) return;
    const text = cut(`+${more}`, charactersIn(width, SMALL));
    const [w, h] = [textWidth(text, SMALL) + 6, textHeight(SMALL) + 6];
    canvas.fill(x + width - w, y + height - h, w, h, GROUND);
    canvas.text(text, x + width - w + 3, y + height - h + 3, SMALL, INK);
  }

  private drawEmpty(word: EmptyCell, x: number, y: number): void {
    const { width, height } = this.facts.cell;
    const [bed, ink] = word === "missing" ? [BED, SOFT_INK] : [FAILED_BED, FAILED_INK];
    this.canvas.fill(x, y, width, height, bed);
    if (word !== "missing") this.canvas.frame(x, y, width, height, ink);
    const scale = textWidth(word, LARGE) <= width ? LARGE : SMALL;
    const text = cut(word, charactersIn(width, scale));
    this.centred([text], x, width, y + ((height - textHeight(scale)) >> 1), scale, ink);
  }

  private lines(lines: readonly string[], x: number, y: number, scale: number, ink: (at: number) => typeof INK): void {
    for (const [i, line] of lines.entries()) {
      this.canvas.text(line, x, y + i * (textHeight(scale) + LINE_GAP), scale, ink(i));
    }
  }

  private centred(lines: readonly string[], x: number, width: number, y: number, scale: number, ink: typeof INK): void {
    for (const [i, line] of lines.entries()) {
      const at = x + Math.max(0, (width - textWidth(line, scale)) >> 1);
      this.canvas.text(line, at, y + i * (textHeight(scale) + LINE_GAP), scale, ink);
    }
  }
}

/** The scale at which no word of the labels is broken; small where even that breaks one. */
function scaleFor(labels: readonly string[], width: number): number {
  const room = charactersIn(width, LARGE);
  return labels.every((label) => label.split(" ").every((word) => [...word].length <= room)) ? LARGE : SMALL;
}

const nameOf = ({ name, labels, hidden }: GridAxis) =>
  hidden === 0 ? name : `${name} (first ${labels.length} of ${labels.length + hidden})`;

const linesHeight = (lines: number, scale: number) => Math.max(0, lines * (textHeight(scale) + LINE_GAP) - LINE_GAP);

const widest = (lines: readonly string[], scale: number) => Math.max(0, ...lines.map((line) => textWidth(line, scale)));
