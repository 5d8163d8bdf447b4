import assert from "node:assert/strict";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { decodePng, invokeNode, Tensor } from "latentkit";
import { refuses } from "../../../helpers/errors.js";
import { filesIn, temporaryFolder, tree } from "../../../helpers/folders.js";
import { golden } from "../../../helpers/tensor/golden.js";

interface Answer {
  result?: unknown;
  files: Record<string, string | { pixels: string }>;
  error?: string;
}

interface Case {
  id: string;
  text: unknown;
  output_file_path: string;
  file_name: unknown;
  file_extension: string;
  overwrite: boolean;
  image: string | null;
  preexisting_file_utf8: string | null;
  head: Answer;
}

const KEY = "ext saveTextLazy";

describe("ext saveTextLazy", () => {
  const outputDir = temporaryFolder();
  const save = (inputs: object) => invokeNode(KEY, inputs as Record<string, unknown>, { outputDir: outputDir() });

  describe("golden", () => {
    const { cases, tensor, raw } = golden<Case>("save_text_lazy");

    for (const one of cases) {
      it(one.id, async () => {
        // <BASE> is the output folder: what the node is given is relative to it
        const path = one.output_file_path.replace(/^<BASE>\/?/, "");
        const { text, file_name, file_extension, overwrite } = one;
        const image = one.image === null ? undefined : tensor(one.image);
        const inputs = { text, output_file_path: path, file_name, file_extension, overwrite, image };
        const name = `${path}/${String(file_name)}.${file_extension}`;
        if (one.preexisting_file_utf8 !== null) {
          mkdirSync(dirname(join(outputDir(), name)), { recursive: true });
          writeFileSync(join(outputDir(), name), one.preexisting_file_utf8);
        }
        const code = REFUSED[one.id];
        if (code !== undefined) {
          await refuses(save(one.id === "lone_surrogate" ? { ...inputs, text: "a\ud800" } : inputs), code);
          assert.deepEqual(tree(outputDir()), []);
          return;
        }
        const { result } = await save(inputs);
        const written = path !== "" && file_name !== "";
        assert.deepEqual(result, [String(text), written && image !== undefined ? image : null]);
        assert.deepEqual(filesIn(outputDir()), Object.keys(expectedFiles(one, path)).sort());
        for (const [file, content] of Object.entries(expectedFiles(one, path))) {
          const bytes = readFileSync(join(outputDir(), file));
          if (content !== "png") assert.equal(bytes.toString("hex"), content);
          else assert.deepEqual([...(await decodePng(bytes)).data], pixels(file.endsWith("_1.png") ? 1 : 0));
        }
      });
    }

    /** A value that breaks a type or the file name is a typed error. */
    const REFUSED: Record<string, string> = {
      name_list: "input.wrong-type",
      list_text: "input.wrong-type",
      list_text_csv: "input.wrong-type",
      name_with_dir_missing: "input.invalid",
      lone_surrogate: "input.invalid",
    };

    /** The reference keeps the last of the batch: its bytes are ours of NAME_1.png. */
    function pixels(index: number): number[] {
      const { shape, data } = tensor("image");
      const size = data.length / shape[0]!;
      const ours = [...data.subarray(index * size, (index + 1) * size)].map((v) => Math.trunc(Math.fround(v * 255)));
      const stored = Object.values(cases.find(({ id }) => id === "image_overwrite")!.head.files).find(
        (file) => typeof file === "object",
      ) as { pixels: string };
      if (index === 1) assert.deepEqual(ours, [...raw(stored.pixels).data]);
      return ours;
    }

    /** Decisions: paths are the output folder's, numbers are text, and the image is saved beside the text. */
    function expectedFiles(one: Case, path: string): Record<string, string> {
      if (one.id === "int_text") return { "t/f.txt": "35" };
      const texts = Object.entries(one.head.files).filter(([, content]) => typeof content === "string");
      const expected = Object.fromEntries(texts) as Record<string, string>;
      if (one.image === null || texts.length === 0) return expected;
      const name = join(path, String(one.file_name));
      return { ...expected, [`${name}.png`]: "png", [`${name}_1.png`]: "png" };
    }
  });

  const base = { text: "x", output_file_path: "t", file_name: "f", file_extension: "txt", overwrite: true };
  const pictures = Tensor.from([0, 0, 0, 1, 1, 1], [2, 1, 1, 3]);

  it("saves a batch as NAME.png, NAME_1.png …, over old ones only where it may", async () => {
    await save({ ...base, image: pictures });
    assert.deepEqual(filesIn(outputDir()), ["t/f.png", "t/f.txt", "t/f_1.png"]);
    await save({ ...base, image: pictures });
    assert.deepEqual(filesIn(outputDir()), ["t/f.png", "t/f.txt", "t/f_1.png"]);
    await save({ ...base, overwrite: false, image: pictures });
    assert.deepEqual(filesIn(outputDir()), ["t/f.png", "t/f.txt", "t/f_1.png", "t/f_2.png", "t/f_3.png"]);
    assert.equal(readFileSync(join(outputDir(), "t/f.txt"), "utf8"), "xx");
  });

  it("trims a line as Python does", async () => {
    await save({ ...base, file_extension: "csv", text: "\u001ca\u0085\n\ufeffb\u3000\n\u2028" });
    assert.equal(readFileSync(join(outputDir(), "t/f.csv"), "utf8"), 'a\r\n\ufeffb\r\n""\r\n');
    const long = `a${" ".repeat(1_000_000)}b`;
    await save({ ...base, file_extension: "csv", text: long });
    assert.equal(readFileSync(join(outputDir(), "t/f.csv"), "utf8"), `${long}\r\n`);
  });

  it("refuses paths and names that leave the output folder", async () => {
    for (const output_file_path of ["..", "../t", "/t", "a/../..", "C:\\t", "\\t", "a\0"]) {
      await refuses(save({ ...base, output_file_path }), "input.invalid", /input "output_file_path": expected a path/);
    }
    for (const file_name of ["../f", "a/b", "/f", "f\0", "..\\f"]) {
      await refuses(save({ ...base, file_name }), "input.invalid", /input "file_name": expected a /);
    }
    assert.deepEqual(tree(outputDir()), []);
  });

  it("does not follow a link that stands where the file goes", async () => {
    mkdirSync(join(outputDir(), "t"));
    writeFileSync(join(outputDir(), "secret"), "kept");
    symlinkSync(join(outputDir(), "secret"), join(outputDir(), "t/f.txt"));
    await refuses(save({ ...base, overwrite: false }), "file.write-failed");
    assert.equal(readFileSync(join(outputDir(), "secret"), "utf8"), "kept");
    await save(base);
    assert.equal(readFileSync(join(outputDir(), "secret"), "utf8"), "kept");
    assert.equal(readFileSync(join(outputDir(), "t/f.txt"), "utf8"), "x");
  });

  it("checks the image before it writes the text", async () => {
    await refuses(save({ ...base, image: Tensor.zeros([1, 0, 1, 3]) }), "tensor.bad-shape", /input "image": expected/);
    assert.deepEqual(tree(outputDir()), []);
  });

  it("says where a folder has the file's name", async () => {
    mkdirSync(join(outputDir(), "t/f.txt"), { recursive: true });
    await refuses(save(base), "file.write-failed", /folder/);
    assert.deepEqual(tree(outputDir()), ["t/", "t/f.txt/"]);
  });
});
