import assert from "node:assert/strict";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { decodePng, invokeNode, registry, Tensor } from "latentkit";
import { refuses, rejectsAs } from "../../../helpers/errors.js";
import { filesIn, temporaryFolder, tree } from "../../../helpers/folders.js";
import { pngChunks, pngText } from "../../../helpers/png/png-chunks.js";
import { golden } from "../../../helpers/tensor/golden.js";

describe("ext saveImageLazy", () => {
  interface Case {
    id: string;
    filename_prefix: string;
    images: string;
    preexisting: string[];
    preexisting_dirs: string[];
    save_metadata: boolean;
    prompt: string | null;
    extra_pnginfo: string | null;
    ui_images?: { filename: string; subfolder: string; type: string }[];
    files?: {
      path: string;
      chunks: { type: string; data?: number[]; key?: string; value?: string }[];
      png: string | null;
    }[];
    tree_after: string[];
    error?: string;
  }

  interface Meta {
    frozen_localtime: string;
    prompts: Record<string, string>;
    extra_pnginfos: Record<string, string>;
  }

  const KEY = "ext saveImageLazy";

  const outputDir = temporaryFolder();

  describe("golden", () => {
    const { cases, meta, tensor, raw } = golden<Case, Meta>("save_image_lazy");
    const clock = () => new Date(meta.frozen_localtime.replace(" ", "T"));

    for (const one of cases) {
      it(one.id, async () => {
        for (const folder of one.preexisting_dirs) mkdirSync(join(outputDir(), folder), { recursive: true });
        for (const file of one.preexisting) {
          mkdirSync(dirname(join(outputDir(), file)), { recursive: true });
          writeFileSync(join(outputDir(), file), "old");
        }
        const before = tree(outputDir());
        const images = tensor(one.images);
        const { filename_prefix, save_metadata } = one;
        const hidden = {
          prompt: one.prompt === null ? null : meta.prompts[one.prompt],
          extra_pnginfo: one.extra_pnginfo === null ? null : meta.extra_pnginfos[one.extra_pnginfo],
        };
        const run = () =>
          invokeNode(KEY, { images, filename_prefix, save_metadata }, { hidden, clock, outputDir: outputDir() });
        if (isRefused(one)) {
          await refuses(run, one.id === "meta_x_bad" ? "value.invalid" : "input.invalid");
          assert.deepEqual(tree(outputDir()), before);
          return;
        }
        const { result, ui } = await run();
        assert.equal(result[0], images);
        assert.deepEqual(ui, { images: uiOf(one) });
        for (const { filename, subfolder } of uiOf(one)) check(one, join(subfolder, filename));
        assert.deepEqual(
          filesIn(outputDir()).filter((path) => one.preexisting.includes(path)).length,
          one.preexisting.length,
        );
        assert.equal(filesIn(outputDir()).length, one.preexisting.length + uiOf(one).length);
      });
    }

    const isRefused = ({ id, error }: Case) =>
      error !== undefined && !["gray1_error", "superscript_digit_crash"].includes(id);

    /** Decisions: counters have ASCII digits only, and grey images are saved. */
    function uiOf({ id, ui_images }: Case): NonNullable<Case["ui_images"]> {
      const ours = {
        gray1_error: "c_00001.png",
        superscript_digit_crash: "ComfyUI_00001.png",
        arabic_digits: "ComfyUI_00001.png",
      };
      const filename = (ours as Record<string, string>)[id];
      return filename === undefined ? ui_images! : [{ filename, subfolder: "", type: "output" }];
    }

    function check(one: Case, path: string): void {
      const bytes = readFileSync(join(outputDir(), path));
      const expected = one.files?.find((file) => file.path === path);
      if (expected === undefined) return;
      const chunks = pngChunks(bytes).map(({ type }) => type);
      assert.deepEqual(
        chunks,
        expected.chunks.map(({ type }) => type),
      );
      assert.deepEqual([...pngChunks(bytes)[0]!.data].slice(8), expected.chunks[0]!.data!.slice(2));
      const text = expected.chunks.filter(({ type }) => type === "tEXt");
      // decision: non-finite numbers become null
      const value = (chunk: { value?: string }) => chunk.value!.replace(/\b(?:NaN|Infinity)\b/g, "null");
      assert.deepEqual(
        pngText(bytes),
        text.map((chunk) => [chunk.key, value(chunk)]),
      );
    }

    it("keeps the pixels", async () => {
      for (const one of cases) {
        for (const [index, { png }] of (one.files ?? []).entries()) {
          if (png === null) continue;
          const prefix = `pixels/${one.id}`;
          const given = { images: tensor(one.images), filename_prefix: prefix, save_metadata: false };
          const { ui } = await invokeNode(KEY, given, { outputDir: outputDir() });
          const { filename } = ui!.images![index] as { filename: string };
          const { data, width, height, channels } = await decodePng(
            readFileSync(join(outputDir(), "pixels", filename)),
          );
          assert.deepEqual([height, width, channels], raw(png).shape);
          assert.deepEqual([...data], [...raw(png).data], one.id);
        }
      }
    });
  });

  const images = Tensor.full([1, 2, 2, 3], 0.5);
  const save = (given: object = {}, options: object = {}) =>
    invokeNode(
      KEY,
      { images, filename_prefix: "p", save_metadata: true, ...given },
      { outputDir: outputDir(), ...options },
    );

  it("is not an output node, but writes files and has a UI result", () => {
    const { outputNode, writesFiles, hasUi, inputs } = registry.get(KEY)!;
    assert.deepEqual([outputNode, writesFiles, hasUi], [false, true, true]);
    assert.equal(inputs.filename_prefix!.options.default, "latentkit");
  });

  it("keeps every digit of a prompt, and the order of keys", async () => {
    const prompt = '{"10": {"seed": 18446744073709551615, "cfg": 7.0}, "9": 1e-07}';
    await save({}, { hidden: { prompt, extra_pnginfo: { workflow: { seed: 2n ** 64n - 1n } } } });
    assert.deepEqual(pngText(readFileSync(join(outputDir(), "p_00001.png"))), [
      ["prompt", prompt],
      ["workflow", '{"seed": 18446744073709551615}'],
    ]);
  });

  it("refuses prefixes that leave the output folder, before it writes", async () => {
    mkdirSync(join(outputDir(), "out"));
    for (const filename_prefix of [
      "../x",
      "..",
      "a/../../x",
      "/x",
      "\\x",
      "C:\\x",
      "..\\x",
      "a\\..\\..\\x",
      "\\\\server\\share",
      "a\0b",
      "a\ud800",
    ]) {
      const run = save({ filename_prefix }, { outputDir: join(outputDir(), "out") });
      await refuses(run, "input.invalid", /input "filename_prefix": expected a path .*, received/);
    }
    assert.deepEqual(tree(outputDir()), ["out/"]);
  });

  it("refuses folders that a symbolic link leads out of the output folder", async () => {
    const out = join(outputDir(), "out");
    const elsewhere = join(outputDir(), "elsewhere");
    mkdirSync(out);
    mkdirSync(elsewhere);
    mkdirSync(join(out, "inside"));
    symlinkSync(elsewhere, join(out, "link"));
    symlinkSync(join(outputDir(), "missing"), join(out, "dangling"));
    symlinkSync(join(out, "inside"), join(out, "fine"));
    await refuses(save({ filename_prefix: "link/x" }, { outputDir: out }), "path.outside");
    await refuses(save({ filename_prefix: "link/deep/er/x" }, { outputDir: out }), "path.outside");
    await refuses(save({ filename_prefix: "dangling/x" }, { outputDir: out }), "path.outside");
    assert.deepEqual(filesIn(elsewhere), []);
    await save({ filename_prefix: "fine/x" }, { outputDir: out });
    assert.deepEqual(filesIn(join(out, "inside")), ["x_00001.png"]);
  });

  it("works in an output folder that is itself behind a link", async () => {
    mkdirSync(join(outputDir(), "real"));
    symlinkSync(join(outputDir(), "real"), join(outputDir(), "link"));
    await save({ filename_prefix: "a/b" }, { outputDir: join(outputDir(), "link") });
    assert.deepEqual(filesIn(join(outputDir(), "real")), ["a/b_00001.png"]);
  });

  it("refuses images without pixels and keys that PNG has no room for, before it writes", async () => {
    for (const shape of [
      [0, 2, 2, 3],
      [1, 0, 2, 3],
      [1, 2, 0, 3],
    ]) {
      await refuses(
        save({ images: Tensor.zeros(shape) }),
        "tensor.bad-shape",
        /input "images": expected a tensor \[B, H, W, C\]/,
      );
    }
    for (const key of ["", "a".repeat(80), "工", "a\nb"]) {
      await refuses(save({}, { hidden: { extra_pnginfo: { good: 1, [key]: 1 } } }), "value.invalid");
    }
    await refuses(save({}, { hidden: { extra_pnginfo: [1] } }), "value.invalid");
    await refuses(save({}, { hidden: { prompt: "{" } }), "graph.invalid-json");
    assert.deepEqual(tree(outputDir()), []);
  });

  it("counts on from any number and leaves names of others alone", async () => {
    writeFileSync(join(outputDir(), "p_99999999999999999999.png"), "");
    writeFileSync(join(outputDir(), "p_00700_.png"), "");
    writeFileSync(join(outputDir(), ".latentkit-00.tmp"), "");
    const { ui } = await save();
    assert.equal((ui!.images![0] as { filename: string }).filename, "p_100000000000000000000.png");
  });

  it("stops between images when the run is interrupted", async () => {
    const controller = new AbortController();
    const clock = () => {
      controller.abort();
      return new Date();
    };
    await rejectsAs(controller.signal, save({}, { clock, signal: controller.signal }));
    assert.deepEqual(filesIn(outputDir()), []);
  });
});

describe("ext saveTextLazy", () => {
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

  it("says so if a folder has the file's name", async () => {
    mkdirSync(join(outputDir(), "t/f.txt"), { recursive: true });
    await refuses(save(base), "file.write-failed", /folder/);
    assert.deepEqual(tree(outputDir()), ["t/", "t/f.txt/"]);
  });
});
