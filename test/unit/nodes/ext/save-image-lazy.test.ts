import assert from "node:assert/strict";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { decodePng, invokeNode, registry, Tensor } from "latentkit";
import { refuses, rejectsAs } from "../../../helpers/errors.js";
import { filesIn, temporaryFolder, tree } from "../../../helpers/folders.js";
import { pngChunks, pngText } from "../../../helpers/png/png-chunks.js";
import { golden } from "../../../helpers/tensor/golden.js";

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

describe("ext saveImageLazy", () => {
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

  it("is no output node, but writes files and has a UI result", () => {
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
