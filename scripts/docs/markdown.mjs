// Pieces of Markdown that the generated pages share.

/** A cell of a table: one line, no bar that would end the cell. */
const cell = (text) => String(text).replaceAll("|", "\\|").replace(/\s+/g, " ").trim();

/** A table of texts; the first row is its head. */
export function table([head, ...rows]) {
  const line = (cells) => `| ${cells.map(cell).join(" | ")} |`;
  return [line(head), `|${head.map(() => "---").join("|")}|`, ...rows.map(line)].join("\n");
}

/** Inline code, also for text that holds a backtick. */
export const code = (text) => (String(text).includes("`") ? `\`\` ${text} \`\`` : `\`${text}\``);

/** The text of a doc comment without its frame. */
export function commentText(comment) {
  const lines = comment
    .replace(/^\/\*\*/, "")
    .replace(/\*\/$/, "")
    .split("\n");
  return lines
    .map((line) => line.replace(/^ *\* ?/, "").trim())
    .join("\n")
    .trim();
}
