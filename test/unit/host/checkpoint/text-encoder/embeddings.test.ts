import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ClipEncoder, tokenizePrompt } from "latentkit";
import { ModelFolders } from "#src/host/checkpoint/files/model-folders.js";
import { EmbeddingRows } from "#src/host/checkpoint/text-encoder/embeddings.js";
import { END, START } from "#src/host/checkpoint/tokenizer/byte-pairs.js";
import { tokenizeClip } from "#src/host/checkpoint/tokenizer/clip.js";
import { readSafetensors, toTensor } from "#src/io/safetensors.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { goldenModels } from "../../../../helpers/models/golden.js";
import { f32, words, writeWeights } from "../../../../helpers/models/weight-file.js";

const VOCABULARY = 49408;

describe("EmbeddingRows", () => {
  const folder = temporaryFolder();
  beforeEach(() => {
    mkdirSync(join(folder(), "embeddings/sub"), { recursive: true });
  });
  const path = (name: string) => join(folder(), "embeddings", name);
  const rowsOf = (name: string, width: number) =>
    new EmbeddingRows({ name, width, vocabulary: VOCABULARY }, new ModelFolders([folder()]));
  const encoderOf = (rows: EmbeddingRows): ClipEncoder => ({
    name: "l",
    start: START,
    end: END,
    pad: END,
    length: 77,
    tokenize: tokenizeClip,
    embedding: (word) => rows.lookUp(word),
    encode: () => assert.fail("nothing is encoded"),
  });
  const valuesOf = (rows: EmbeddingRows, ids: readonly number[]) => [...rows.feed([ids]).embeddings.data];

  it("refuses a factor beside an embedding, by key", async () => {
    for (const key of ["emb_params_scale", "emb_params.weight_scale", "emb_params_zero_point"]) {
      writeWeights(path("scaled.safetensors"), { emb_params: f32([1, 8]), [key]: f32([]), step: f32([]) });
      await refuses(
        () => rowsOf("l", 8).lookUp("scaled"),
        "model.invalid",
        new RegExp(`"${key}" changes emb_params in a way`),
      );
    }
    writeWeights(path("plain.safetensors"), { emb_params: f32([1, 8]), emb_params_note: f32([]) });
    rowsOf("l", 8).lookUp("plain");
  });

  it("takes the places in a prompt that the reference gives them", () => {
    copyFileSync(join(goldenModels(), "embeddings/tiny-a.safetensors"), path("tiny-a.safetensors"));
    const rows = rowsOf("l", 64);
    const text = "a photo of embedding:tiny-a, (embedding:tiny-a:1.2) in the style of embedding:missing-one, cat";
    const warnings: string[] = [];
    const [chunk] = tokenizePrompt(text, encoderOf(rows), { warn: (message) => warnings.push(message) });
    const ids = [VOCABULARY, VOCABULARY + 1, VOCABULARY + 2];
    // with these ids and weights the conditioning is that of the golden graph sd1/embedding
    const expected = [START, 320, 1125, 539, ...ids, 267, ...ids, 530, 518, 1844, 539, 267, 2368, END];
    assert.deepEqual(
      chunk!.slice(0, expected.length).map(({ id }) => id),
      expected,
    );
    assert.deepEqual(
      chunk!.slice(4, 11).map(({ weight }) => weight),
      [1, 1, 1, 1, 1.2, 1.2, 1.2],
    );
    assert.deepEqual(warnings, [
      'Embedding "missing-one" is ignored: there is no such file in the embeddings folders.',
    ]);
    const stored = readSafetensors(readFileSync(path("tiny-a.safetensors"))).tensors.get("emb_params")!;
    const { tokens, embeddings } = rows.feed([chunk!.map(({ id }) => id)]);
    assert.deepEqual(tokens[0]!.slice(4, 7), ids);
    assert.deepEqual(embeddings.shape, [3, 64]);
    assert.deepEqual(embeddings.data, toTensor(stored).data);
  });

  it("have a tensor for each encoder of SDXL", () => {
    copyFileSync(join(goldenModels(), "embeddings/tiny_xl.safetensors"), path("tiny_xl.safetensors"));
    const { tensors } = readSafetensors(readFileSync(path("tiny_xl.safetensors")));
    for (const [name, width] of [
      ["l", 64],
      ["g", 128],
    ] as const) {
      const rows = rowsOf(name, width);
      const { ids, rest, warning } = rows.lookUp("tiny_xl,");
      assert.equal(warning, undefined);
      assert.equal(rest, ",");
      assert.deepEqual(valuesOf(rows, ids), [...toTensor(tensors.get(`clip_${name}`)!).data]);
    }
  });

  it("are found as given, with an ending, in a folder, and with commas in their names", () => {
    writeWeights(path("a.safetensors"), { emb_params: f32([1, 2], [1, 2]) });
    writeWeights(path("b,.safetensors"), { any: f32([2], [3, 4]) });
    writeWeights(path("sub/c.safetensors"), { x: words("F16", [1, 2], [0x3c00, 0xc000]) });
    writeWeights(path("d.sft"), { x: words("BF16", [1, 2], [0x3f80, 0xc000]) });
    const rows = rowsOf("l", 2);
    const look = (word: string) => {
      const { ids, rest } = rows.lookUp(word);
      return [valuesOf(rows, ids), rest];
    };
    assert.deepEqual(look("a"), [[1, 2], ""]);
    assert.deepEqual(look("a.safetensors,,"), [[1, 2], ",,"]);
    assert.deepEqual(look("b,"), [[3, 4], ""]);
    for (const name of ["c", "sub/c", "sub\\c.safetensors"]) assert.deepEqual(look(name), [[1, -2], ""]);
    assert.deepEqual(look("d.sft"), [[1, -2], ""]);
    assert.deepEqual(look(",,,"), [[0, 0], ",,,"]);
  });

  it("are found in a LoRA's file, one embedding after the other", () => {
    writeWeights(path("lora.safetensors"), {
      "lora_unet_x.lora_down.weight": f32([1, 3], [9, 9, 9]),
      "bundle_emb.one.string_to_param.*": f32([2, 2], [1, 2, 3, 4]),
      "bundle_emb.two.string_to_param.*": words("F16", [1, 2], [0x3c00, 0xc000]),
      "bundle_emb.two.other": f32([1, 2], [8, 8]),
    });
    writeWeights(path("xl.safetensors"), {
      "bundle_emb.one.clip_l": f32([1, 2], [5, 6]),
      "bundle_emb.one.clip_g": f32([1, 3], [7, 8, 9]),
    });
    const rows = rowsOf("l", 2);
    assert.deepEqual(valuesOf(rows, rows.lookUp("lora").ids), [1, 2, 3, 4, 1, -2]);
    assert.deepEqual(valuesOf(rows, rows.lookUp("xl").ids), [5, 6]);
    const wide = rowsOf("g", 3);
    assert.deepEqual(valuesOf(wide, wide.lookUp("xl").ids), [7, 8, 9]);
  });

  it("are left out with a warning if they fit another encoder", () => {
    writeWeights(path("wide.safetensors"), { emb_params: f32([1, 3]) });
    writeWeights(path("cube.safetensors"), { emb_params: f32([1, 1, 2]) });
    writeWeights(path("two.safetensors"), { clip_l: f32([1, 2]), clip_g: f32([1, 3]) });
    const rows = rowsOf("l", 2);
    const isLeftOut = (rows: EmbeddingRows, name: string, why: string) => {
      const warning = `Embedding "${name}.safetensors" is ignored: ${why}.`;
      assert.deepEqual(rows.lookUp(name), { ids: [], rest: "", warning });
    };
    const shape = (sides: string) => `its shape is [${sides}], but the encoder takes 2 values per token`;
    isLeftOut(rows, "wide", shape("1, 3"));
    isLeftOut(rows, "wide", shape("1, 3"));
    isLeftOut(rows, "cube", shape("1, 1, 2"));
    isLeftOut(rowsOf("h", 2), "two", "it has no tensor emb_params or clip_h");
  });

  it("name the nearest file if none has the name, in other case say", () => {
    writeWeights(path("easynegative.safetensors"), { emb_params: f32([1, 2]) });
    const { warning } = rowsOf("l", 2).lookUp("EasyNegativ");
    const why = 'there is no such file in the embeddings folders. Did you mean "easynegative.safetensors"?';
    assert.equal(warning, `Embedding "EasyNegativ" is ignored: ${why}`);
  });

  it("name a file of another format, with what to do", async () => {
    writeFileSync(path("page.safetensors"), "<!DOCTYPE html><html>");
    const sentence = /^Embedding "page\.safetensors": expected a \.safetensors file, received a web page: .*login/;
    await refuses(() => rowsOf("l", 2).lookUp("page"), "model.invalid", sentence);
  });

  it("never run a pickle, and refuse what is damaged, large or elsewhere", async () => {
    writeFileSync(path("p.pt"), "\x80\x02cos\nsystem\n");
    writeFileSync(path("q.bin"), "x");
    writeFileSync(path("damaged.safetensors"), "x".repeat(100));
    writeWeights(path("large.safetensors"), { emb_params: f32([2 ** 21 + 1, 2]), more: f32([1, 2]) });
    writeWeights(path("whole.safetensors"), { emb_params: { dtype: "I8", shape: [1, 2], bytes: new Uint8Array(2) } });
    writeFileSync(join(folder(), "secret.safetensors"), "x");
    const rows = rowsOf("l", 2);
    const refused = (name: string, code: string, ...patterns: RegExp[]) =>
      refuses(() => rows.lookUp(name), code, ...patterns);
    await refused("p", "model.unsupported", /^Embedding "p\.pt": expected a \.safetensors file, received a pickle/);
    await refused("q.bin,", "model.unsupported", /"q\.bin"/);
    await refused(
      "damaged",
      "model.invalid",
      /^Embedding "damaged\.safetensors": expected a \.safetensors file, received text/,
    );
    await refused("large", "model.invalid", /at most 16777216 bytes/);
    await refused("whole", "model.invalid", /received I8/);
    for (const name of ["../secret", "..\\secret.safetensors", "/etc/passwd", "sub/../../secret"])
      await refused(name, "path.outside", /"/);
    // a safetensors file is preferred to a pickle of the same name
    writeWeights(path("p.safetensors"), { emb_params: f32([1, 2]) });
    await new Promise((resolve) => setTimeout(resolve, 150));
    assert.equal(rows.lookUp("p").ids.length, 1);
  });

  it("get new ids if the file changes; old ids keep their rows", () => {
    writeWeights(path("a.safetensors"), { emb_params: f32([1, 2], [1, 2]) });
    const rows = rowsOf("l", 2);
    const { ids: before } = rows.lookUp("a");
    assert.deepEqual(rows.lookUp("a").ids, before);
    writeWeights(path("a.safetensors"), { emb_params: f32([2, 2], [5, 6, 7, 8]) });
    const { ids: after } = rows.lookUp("a");
    assert.deepEqual([before, after], [[VOCABULARY], [VOCABULARY + 1, VOCABULARY + 2]]);
    assert.deepEqual(valuesOf(rows, [...after, ...before]), [5, 6, 7, 8, 1, 2]);
  });

  it("number the rows of one call from the vocabulary's size on", async () => {
    writeWeights(path("a.safetensors"), { emb_params: f32([3, 2]) });
    const rows = rowsOf("l", 2);
    const { ids } = rows.lookUp("a");
    const { tokens, embeddings } = rows.feed([
      [START, ids[2]!, 7],
      [ids[0]!, ids[2]!],
    ]);
    assert.deepEqual(tokens, [
      [START, VOCABULARY, 7],
      [VOCABULARY + 1, VOCABULARY],
    ]);
    assert.deepEqual([...embeddings.data], [5, 6, 1, 2]);
    assert.deepEqual(rows.feed([[START, END]]).embeddings.shape, [1, 2]);
    await refuses(() => rows.feed([[VOCABULARY + 99]]), "value.invalid", /received 49507/);
  });

  it("take bounded memory: the rows least recently used go first", async () => {
    const width = 1024;
    const large = { dtype: "F32", shape: [4000, width], bytes: new Uint8Array(4000 * width * 4) };
    for (let i = 0; i < 10; i++) writeWeights(path(`${i}.safetensors`), { large });
    const rows = rowsOf("l", width);
    const first = rows.lookUp("0").ids;
    for (let i = 1; i < 9; i++) {
      rows.lookUp(String(i));
      rows.lookUp("0");
    }
    const second = rows.lookUp("1").ids;
    assert.ok(second[0]! > first[0]! + 9 * 4000 - 1, "1 was evicted and has new ids");
    assert.deepEqual(rows.lookUp("0").ids, first);
    await refuses(() => rows.feed([[first[0]! + 4000]]), "value.invalid");
  });
});
