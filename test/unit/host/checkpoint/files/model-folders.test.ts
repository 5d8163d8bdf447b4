import assert from "node:assert/strict";
import { mkdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as delay, setImmediate } from "node:timers/promises";
import { ModelFolders } from "#src/host/checkpoint/files/model-folders.js";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";

describe("ModelFolders", () => {
  const folder = temporaryFolder();
  const write = (path: string, text = ""): string => {
    const file = join(folder(), path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    return file;
  };
  const roots = (...names: string[]) => new ModelFolders(names.map((name) => join(folder(), name)));

  it("lists the models of a kind, sorted, from all folders that it has had", () => {
    for (const name of ["b.safetensors", "a.CKPT", "sd/x.sft", "readme.txt", ".hidden.safetensors", ".cache/y.pt"])
      write(`models/checkpoints/${name}`);
    write("models/unet/u.safetensors");
    write("models/diffusion_models/d.gguf");
    const models = roots("models");
    assert.deepEqual(models.list("checkpoints"), ["a.CKPT", "b.safetensors", "sd/x.sft"]);
    assert.deepEqual(models.list("diffusion_models"), ["d.gguf", "u.safetensors"]);
    assert.deepEqual(models.list("loras"), []);
  });

  it("lists a folder of diffusers as one checkpoint, and of other kinds its files", () => {
    for (const path of ["checkpoints/sd/onnx", "diffusers/xl", "diffusion_models/sd"]) {
      write(`models/${path}/model_index.json`, "{}");
      write(`models/${path}/unet/model.safetensors`);
    }
    const models = roots("models");
    assert.deepEqual(models.list("checkpoints"), ["sd/onnx", "xl"]);
    assert.equal(models.resolve("checkpoints", "onnx").path, join(folder(), "models/checkpoints/sd/onnx"));
    assert.deepEqual(models.list("diffusion_models"), ["sd/unet/model.safetensors"]);
  });

  it("prefers the first of several roots", () => {
    write("one/loras/a.safetensors");
    write("two/loras/a.safetensors");
    write("two/loras/b.safetensors");
    const models = roots("one", "two");
    assert.deepEqual(models.list("loras"), ["a.safetensors", "b.safetensors"]);
    assert.equal(models.resolve("loras", "a.safetensors").path, join(folder(), "one/loras/a.safetensors"));
  });

  it("takes ComfyUI's own folder, and its extra_model_paths.yaml", () => {
    write("ComfyUI/models/checkpoints/own.safetensors");
    write("webui/models/Stable-diffusion/other.safetensors");
    write("webui/models/Lora/l.safetensors");
    write("webui/models/LyCORIS/m.safetensors");
    write("first/default.safetensors");
    write(
      "ComfyUI/extra_model_paths.yaml",
      [
        "# as the example has it",
        "a111:",
        "    base_path: ../webui/",
        "    checkpoints: models/Stable-diffusion",
        "    configs: models/Stable-diffusion",
        "    loras: |",
        "         models/Lora",
        "         models/LyCORIS",
        "    embeddings:",
        "mine:",
        `    is_default: true`,
        `    checkpoints: ${join(folder(), "first")}`,
        `    clip: ~/no-such-folder`,
        "empty:",
      ].join("\n"),
    );
    const models = roots("ComfyUI");
    assert.deepEqual(models.list("checkpoints"), ["default.safetensors", "other.safetensors", "own.safetensors"]);
    assert.deepEqual(models.list("loras"), ["l.safetensors", "m.safetensors"]);
    assert.equal(models.folders("checkpoints")[0], join(folder(), "first"));
    assert.ok(models.folders("text_encoders").includes(join(homedir(), "no-such-folder")));
    const file = new ModelFolders([join(folder(), "ComfyUI/extra_model_paths.yaml")]);
    assert.deepEqual(file.list("checkpoints"), ["default.safetensors", "other.safetensors"]);
  });

  it("refuses a folder with another layout, and says which one is meant", async () => {
    write("a1111/models/Stable-diffusion/a.safetensors");
    write("a1111/embeddings/a.safetensors");
    write("plain/checkpoints/a.safetensors");
    write("above/models/vae/a.safetensors");
    mkdirSync(join(folder(), "empty"));
    const expected = "Models: expected ComfyUI's models folder, with folders such as checkpoints and loras, received";
    const pathOf = (name: string) => JSON.stringify(join(folder(), name));
    const refused = async (name: string, advice: string) => {
      const { message } = await refuses(() => roots(name), "config.invalid");
      assert.equal(message, `${expected} ${pathOf(name)}. ${advice}`);
    };
    for (const name of ["a1111", "a1111/models", "a1111/models/Stable-diffusion"])
      await refused(name, "Name other folders in an extra_model_paths.yaml.");
    await refused("plain/checkpoints", `Name the folder above it, ${pathOf("plain")}.`);
    assert.deepEqual(roots("above").list("vae"), ["a.safetensors"]);
    assert.deepEqual(roots("empty").list("vae"), []);
  });

  it("refuses roots and files that are none", async () => {
    await refuses(
      () => roots("none"),
      "config.invalid",
      /expected a folder or a \.yaml file, received ".*none", which does not exist\.$/,
    );
    for (const [text, pattern] of [
      ["a: [", /line 1/],
      ["- a", /expected sections/],
      ["a: b", /section "a"/],
      ["a:\n  loras: 5", /"loras" of section "a"/],
      ["a:\n  base_path: [x]\n  loras: y", /"base_path" of section "a"/],
      [`a: &a\n  loras: x\nb: [${"*a,".repeat(100)}]`, /alias/],
      [`a:\n  loras: |\n${"    x\n".repeat(1001)}`, /at most 1000 folders/],
      [`#${"x".repeat(2 ** 20)}`, /1 MiB/],
    ] as const) {
      write("extra.yaml", text);
      await refuses(() => roots("extra.yaml"), "config.invalid", /extra\.yaml/, pattern);
    }
  });

  it("finds a file with its folder, without it and with another", async () => {
    write("m/checkpoints/SDXL/base.safetensors");
    write("m/checkpoints/sd15.safetensors");
    const models = roots("m");
    const nameOf = (name: string) => models.resolve("checkpoints", name).name;
    assert.equal(nameOf("SDXL/base.safetensors"), "SDXL/base.safetensors");
    assert.equal(nameOf("SDXL\\base.safetensors"), "SDXL/base.safetensors");
    assert.equal(nameOf("./sd15.safetensors"), "sd15.safetensors");
    assert.equal(nameOf("base.safetensors"), "SDXL/base.safetensors");
    assert.equal(nameOf("1.5\\sd15.safetensors"), "sd15.safetensors");
    write("m/checkpoints/old/SDXL/base.safetensors");
    await delay(150);
    assert.equal(nameOf("SDXL/base.safetensors"), "SDXL/base.safetensors");
    await refuses(
      () => nameOf("base.safetensors"),
      "model.missing",
      /which 2 files share: "SDXL\/base\.safetensors", "old\/SDXL\/base\.safetensors"/,
    );
    assert.equal(nameOf("old/SDXL/base.safetensors"), "old/SDXL/base.safetensors");
  });

  it("names the nearest files if one is missing", async () => {
    for (const name of ["v1-5-pruned-emaonly-fp16", "sd_xl_base_1.0", "dreamshaper_8"])
      write(`m/checkpoints/sub/${name}.safetensors`);
    const models = roots("m");
    const error = await refuses(
      () => models.resolve("checkpoints", "v1-5-pruned-emaonly.ckpt"),
      "model.missing",
      /among the checkpoints, received "v1-5-pruned-emaonly\.ckpt"\. Nearest: "sub\/v1-5-pruned-emaonly-fp16\.safetensors"\./,
    );
    assert.equal(error.details.suggestion, "sub/v1-5-pruned-emaonly-fp16.safetensors");
    await refuses(
      () => models.resolve("checkpoints", "qqq"),
      "model.missing",
      /None of the 3 files has a similar name/,
    );
    await refuses(() => models.resolve("loras", "a"), "model.missing", /Folders searched: .*\/m\/loras\./);
    await refuses(
      () => new ModelFolders([]).resolve("loras", "a"),
      "model.missing",
      /No folder is configured for them/,
    );
  });

  it("keeps letters' case as the file system has it", async () => {
    write("m/loras/Mixed.safetensors");
    const models = roots("m");
    const isCaseSensitive = !models.list("loras").includes("mixed.safetensors") && process.platform === "linux";
    if (isCaseSensitive) await refuses(() => models.resolve("loras", "mixed.safetensors"), "model.missing", /Mixed/);
    else assert.equal(models.resolve("loras", "mixed.safetensors").name, "Mixed.safetensors");
  });

  it("finds a name whose accents are letters of their own, as macOS has them, and the other way round", () => {
    write("m/loras/cafe\u0301.safetensors");
    write("m/loras/Übung/\u00e9t\u00e9.safetensors");
    const models = roots("m");
    const nameOf = (name: string) => models.resolve("loras", name).name.normalize("NFC");
    for (const form of ["NFC", "NFD"]) {
      assert.equal(nameOf("caf\u00e9.safetensors".normalize(form)), "caf\u00e9.safetensors");
      assert.equal(nameOf("SDXL\\caf\u00e9.safetensors".normalize(form)), "caf\u00e9.safetensors");
      for (const name of ["Übung/été.safetensors", "Übung\\été.safetensors", "été.safetensors"])
        assert.equal(nameOf(name.normalize(form)), "Übung/été.safetensors".normalize("NFC"));
    }
  });

  it("leaves its folders by no name", async () => {
    write("m/loras/a.safetensors");
    write("m/secret.safetensors");
    const models = roots("m");
    for (const name of [
      "../secret.safetensors",
      "..\\secret.safetensors",
      "x/../../secret.safetensors",
      "/etc/passwd",
      "C:\\a.safetensors",
      "c:a.safetensors",
      "\\\\server\\a.safetensors",
      "a\0.safetensors",
      "x".repeat(5000),
    ])
      await refuses(() => models.resolve("loras", name), "path.outside", /inside the folders of the LoRAs/);
  });

  it("follows links, but not in circles", () => {
    write("elsewhere/linked.safetensors");
    write("m/loras/own.safetensors");
    symlinkSync(join(folder(), "elsewhere"), join(folder(), "m/loras/link"));
    symlinkSync(join(folder(), "elsewhere/linked.safetensors"), join(folder(), "m/loras/file.safetensors"));
    symlinkSync(join(folder(), "m/loras"), join(folder(), "elsewhere/back"));
    symlinkSync("nowhere", join(folder(), "m/loras/broken.safetensors"));
    symlinkSync("itself.safetensors", join(folder(), "m/loras/itself.safetensors"));
    assert.deepEqual(roots("m").list("loras"), ["file.safetensors", "link/linked.safetensors", "own.safetensors"]);
  });

  it("ends if links multiply folders", async () => {
    let next = join(folder(), "m/loras");
    for (let depth = 0; depth < 20; depth++) {
      const inner = join(folder(), `d${depth}`);
      mkdirSync(inner);
      mkdirSync(next, { recursive: true });
      symlinkSync(inner, join(next, "a"));
      symlinkSync(inner, join(next, "b"));
      next = inner;
    }
    await refuses(() => roots("m").list("loras"), "value.out-of-range", /at most 20000 folders/);
  });

  it("does not list what lies deeper than 32 folders", () => {
    write(`m/loras/${"d/".repeat(32)}in.safetensors`);
    write(`m/loras/${"d/".repeat(33)}out.safetensors`);
    assert.deepEqual(roots("m").list("loras"), [`${"d/".repeat(32)}in.safetensors`]);
  });

  it("sees new and removed files, and reads folders again only if they have changed", async () => {
    const old = new Date(Date.now() - 60_000);
    const age = (path: string) => utimesSync(join(folder(), path), old, old);
    write("m/loras/sub/a.safetensors");
    for (const path of ["m/loras", "m/loras/sub"]) age(path);
    const models = roots("m");
    const first = models.list("loras");
    await delay(150);
    assert.equal(models.list("loras"), first);
    write("m/loras/sub/b.safetensors");
    // a name that is missing is looked for at once, later lists have it too
    await delay(150);
    assert.equal(models.resolve("loras", "b.safetensors").name, "sub/b.safetensors");
    rmSync(join(folder(), "m/loras/sub/a.safetensors"));
    await delay(150);
    assert.deepEqual(models.list("loras"), ["sub/b.safetensors"]);
  });

  it("finds a file that was added after the last look, by each of its names", async () => {
    write("m/loras/sub/a.safetensors");
    const models = roots("m");
    assert.equal(models.find("loras", "b.safetensors"), undefined);
    write("m/loras/b.safetensors");
    assert.equal(models.find("loras", "b.safetensors")?.name, "b.safetensors");
    write("m/loras/sub/c.safetensors");
    assert.equal(models.find("loras", "sub/c.safetensors")?.name, "sub/c.safetensors");
    for (const name of ["d", "e"]) {
      await setImmediate();
      write(`m/loras/new-${name}/${name}.safetensors`);
      assert.equal(models.find("loras", `${name}.safetensors`)?.name, `new-${name}/${name}.safetensors`);
    }
    assert.deepEqual(models.list("loras").length, 5);
  });

  it("notices a folder that comes after the first look", async () => {
    mkdirSync(join(folder(), "m"));
    const models = roots("m");
    assert.deepEqual(models.list("vae"), []);
    write("m/vae/v.safetensors");
    await delay(150);
    assert.deepEqual(models.list("vae"), ["v.safetensors"]);
  });

  it("answers for 5,000 loaders of a graph in no time, missing ones too @alone", () => {
    for (let i = 0; i < 300; i++) write(`m/loras/${i % 10}/${i}.safetensors`);
    const models = roots("m");
    const start = process.cpuUsage();
    for (let i = 0; i < 5000; i++) {
      models.resolve("loras", `${i % 300}.safetensors`);
      assert.equal(models.find("loras", `missing-${i}`), undefined);
    }
    const { user, system } = process.cpuUsage(start);
    assert.ok(user + system < 2_000_000, `${(user + system) / 1000} ms`);
  });
});
