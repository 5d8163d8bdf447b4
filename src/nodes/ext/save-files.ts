import { inputError } from "../../base/errors.js";
import { counterFiles, type OutputFiles } from "../../io/files/output-files.js";
import { type OutputTarget, resolveFile } from "../../io/files/output-path.js";
import { encodeItem, metadataText, saveImages, split } from "../../io/files/save-images.js";
import { EXTENSIONS, type PictureFormat } from "../../io/pictures/format.js";
import { savingOf, validPaths } from "../core/save-files.js";
import { defineNode } from "../define.js";
import { boolean, choice, image, text } from "../inputs.js";

export const saveImageLazy = defineNode({
  key: "ext saveImageLazy",
  description: "Saves each image in the output folder, as PNG or in the format of the run, and passes the images on.",
  deprecated: true,
  inputs: {
    images: image(),
    filename_prefix: text({ default: "latentkit", strict: true }),
    save_metadata: boolean({ default: true }),
  },
  outputs: { images: "IMAGE" },
  hidden: { prompt: "PROMPT", extra_pnginfo: "EXTRA_PNGINFO" },
  writesFiles: true,
  hasUi: true,
  validate: ({ filename_prefix }) => validPaths({ filename_prefix }),
  run: async ({ images, filename_prefix, save_metadata, prompt, extra_pnginfo }, context) => {
    const saved = await saveImages(images, {
      outputFolder: context.folders.output,
      prefix: filename_prefix,
      prefixInput: "filename_prefix",
      text: save_metadata ? metadataText(prompt, extra_pnginfo) : [],
      ...savingOf(context, save_metadata),
    });
    return { result: [images], ui: { images: saved.map((file) => ({ ...file, type: "output" })) } };
  },
});

const KEY = "ext saveTextLazy";

// Returns ui.files beside the outputs, so that a result can name the texts.
// Without overwrite a text is appended in one write, and images take the next free name.
export const saveTextLazy = defineNode({
  key: KEY,
  description: "Saves a text in the output folder, and images beside it.",
  deprecated: true,
  inputs: {
    text: text({ default: "", multiline: true, strict: true }),
    output_file_path: text({ default: "", strict: true }),
    file_name: text({ default: "", strict: true }),
    file_extension: choice(["txt", "csv"]),
    overwrite: boolean({ default: true }),
    image: image({ optional: true }),
  },
  outputs: [
    { name: "text", type: "STRING" },
    { name: "image", type: "IMAGE", nullable: true },
  ],
  writesFiles: true,
  validate: ({ output_file_path, file_name }) => {
    // nothing is written if one of them is empty
    if (output_file_path === "" || file_name === "") return true;
    return validPaths({ output_file_path }, { file_name });
  },
  run: async (inputs, { folders, output }) => {
    const { output_file_path: path, file_name: name, overwrite, image } = inputs;
    if (path === "" || name === "") return { text: inputs.text, image: null };
    const fileName = `${name}.${inputs.file_extension}`;
    const target = resolveFile(folders.output, path, fileName, { folder: "output_file_path", name: "file_name" });
    const { format } = output ?? {};
    const content = inputs.file_extension === "csv" ? csvRows(inputs.text) : inputs.text;
    const bytes = utf8(content);
    const pictures =
      image === undefined
        ? []
        : await Promise.all(split(image, "image").map((_, i) => encodeItem(image, i, { format })));
    const files = output?.files ?? counterFiles;
    await files.makeFolder(folders.output, target);
    if (overwrite) await files.writeReplacing(target.folder, fileName, bytes);
    else await files.writeAppending(target.folder, fileName, bytes);
    const names = [fileName, ...(await savePictures(files, target, { name, format }, pictures, overwrite))];
    const saved = names.map((filename) => ({ filename, subfolder: target.subfolder, type: "output" }));
    return { result: { text: inputs.text, image: image ?? null }, ui: { files: saved } };
  },
});

/** Writes NAME.png, NAME_1.png, NAME_2.png …, or with the format's extension; without `overwrite` the next free names. Returns the names. */
async function savePictures(
  files: OutputFiles,
  target: OutputTarget,
  { name, format }: { name: string; format?: PictureFormat },
  pictures: readonly Uint8Array[],
  overwrite: boolean,
): Promise<string[]> {
  const extension = EXTENSIONS[format?.type ?? "png"];
  const nameAt = (index: number) => `${index === 0 ? name : `${name}_${index}`}${extension}`;
  const names: string[] = [];
  for (const [index, picture] of pictures.entries()) {
    if (!overwrite) names.push(await files.writeNew(target.folder, picture, (attempt) => nameAt(index + attempt)));
    else {
      await files.writeReplacing(target.folder, nameAt(index), picture);
      names.push(nameAt(index));
    }
  }
  return names;
}

function utf8(content: string): Buffer {
  if (/\p{Surrogate}/u.test(content)) {
    throw inputError("input.invalid", { node: KEY, input: "text" }, "text without halves of surrogate pairs", content);
  }
  return Buffer.from(content);
}

/** Characters that Python's str.strip removes; JavaScript's trim removes others. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: Python counts separators and vertical tabs as space
const PYTHON_SPACE = /[\t-\r\u001c- \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;

function stripped(line: string): string {
  let [start, end] = [0, line.length];
  while (start < end && PYTHON_SPACE.test(line[start]!)) start++;
  while (end > start && PYTHON_SPACE.test(line[end - 1]!)) end--;
  return line.slice(start, end);
}

/** One row for each trimmed line, with one field, quoted only if CSV needs it. */
const csvRows = (content: string): string =>
  content
    .split("\n")
    .map((line) => `${csvField(stripped(line))}\r\n`)
    .join("");

const csvField = (field: string): string =>
  field === "" || /[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field;
