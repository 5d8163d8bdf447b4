#!/usr/bin/env node
// Compiles latentkit_cuda.so for every GPU and checks what came out: one export, no CUDA library needed at load, an
// image for each architecture, all kernels in them, and no arithmetic but the one that is written.
// Without a CUDA compiler it says so and ends well, unless LATENTKIT_REQUIRE_CUDA=1.
// With -fmad=false the compiler writes operations that the assembler may not fuse either; the PTX is read to check.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { root } from "./setup.mjs";

const folder = join(root, "build/cuda-check");
const library = join(folder, "Release/latentkit_cuda.so");
const IMAGES = ["elf 75", "elf 80", "elf 86", "elf 89", "elf 90", "elf 100", "elf 120", "ptx 120"];
const KERNELS = join(root, "native/cuda/kernels/kernels.cu");

const nvcc = ["nvcc", "/usr/local/cuda/bin/nvcc"].find((name) => spawnSync(name, ["--version"]).status === 0);
if (nvcc === undefined) {
  process.stderr.write("No CUDA compiler (nvcc) is installed: the CUDA library is not checked.\n");
  process.exit(process.env.LATENTKIT_REQUIRE_CUDA === "1" ? 1 : 0);
}

const started = Date.now();
run("cmake", ["-S", root, "-B", folder, "-DLATENTKIT_ADDON=OFF", "-DLATENTKIT_CUDA=ON"]);
run("cmake", ["--build", folder, "--target", "latentkit_cuda", "--parallel", String(availableParallelism())]);
const seconds = ((Date.now() - started) / 1000).toFixed(1);

checkSymbols();
const images = listImages();
assert.deepEqual(
  images.map(({ name }) => name),
  IMAGES,
);
checkTable();
checkKernels();
const kilobytes = (bytes) => `${(bytes / 1024).toFixed(0)} KB`;
const size = kilobytes(statSync(library).size);
const imageSizes = images.map(({ name, bytes }) => `${name} ${kilobytes(bytes)}`).join(", ");
process.stderr.write(`latentkit_cuda.so: ${size}, of which ${imageSizes}; built in ${seconds} s.\n`);

function checkSymbols() {
  const symbols = run("nm", ["-D", "--defined-only", library]).trim().split("\n");
  assert.deepEqual(
    symbols.map((line) => line.split(" ").at(-1)),
    ["latentkit_cuda"],
  );
  const needed = [...run("readelf", ["-d", library]).matchAll(/NEEDED.*\[(.*)\]/g)].map(([, name]) => name);
  for (const name of needed) assert.match(name, /^(libc|libm|libgcc_s|libpthread|libdl|ld-linux-[\w-]+)\.so/);
}

/** The entries of the image, as cuobjdump lists them; compared with cuobjdump if it is installed. */
function listImages() {
  const section = /\.nv_fatbin\s+PROGBITS\s+[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+)/.exec(run("readelf", ["-SW", library]));
  assert.ok(section, `${library} has no section .nv_fatbin`);
  const [, offset, size] = section;
  const at = Number.parseInt(offset, 16);
  const image = readFileSync(library).subarray(at, at + Number.parseInt(size, 16));
  assert.equal(image.readUInt32LE(0), 0xba55ed50, "no fat binary");
  const end = image.readUInt16LE(6) + Number(image.readBigUInt64LE(8));
  const entries = [];
  for (let entry = image.readUInt16LE(6); entry < end; ) {
    const bytes = image.readUInt32LE(entry + 4) + Number(image.readBigUInt64LE(entry + 8));
    entries.push({
      name: `${image.readUInt16LE(entry) === 2 ? "elf" : "ptx"} ${image.readUInt32LE(entry + 28)}`,
      bytes,
    });
    entry += bytes;
  }
  const listed = spawnSync("cuobjdump", ["--list-elf", library], { encoding: "utf8" });
  if (listed.status === 0) {
    const elfs = [...listed.stdout.matchAll(/sm_(\d+)/g)].map(([, number]) => `elf ${number}`);
    const names = entries.map(({ name }) => name);
    assert.deepEqual(elfs.sort(), names.filter((name) => name.startsWith("elf")).sort());
  }
  return entries.sort((a, b) => IMAGES.indexOf(a.name) - IMAGES.indexOf(b.name));
}

/** The exported function, called: its table has the version of the header. */
function checkTable() {
  const koffi = createRequire(import.meta.url)("koffi");
  const head = koffi.struct({ abi: "uint32_t", bytes: "uint32_t", architectures: "const char *" });
  const table = koffi.decode(koffi.load(library).func("void *latentkit_cuda()")(), head);
  const header = readFileSync(join(root, "native/include/engine_cuda.h"), "utf8");
  assert.equal(table.abi, Number(header.match(/#define ENGINE_CUDA_ABI (\d+)/)?.[1]));
  assert.equal(table.architectures, "75,80,86,89,90,100,120");
}

/** All kernels are there, and where they are not written, fused, approximate and flushing operations are not. */
function checkKernels() {
  const flags = /^.*-fmad=.*$/m
    .exec(readFileSync(join(root, "native/cuda/CMakeLists.txt"), "utf8"))?.[0]
    .trim()
    .split(" ");
  assert.ok(flags, "native/cuda/CMakeLists.txt has no line with -fmad=");
  const include = ["-I", join(root, "native"), "-I", join(root, "native/cuda")];
  const ptx = join(folder, "kernels.ptx");
  run(nvcc, ["-ptx", "-arch=sm_90", "-std=c++17", ...flags, ...include, "-o", ptx, KERNELS]);
  const bodies = readFileSync(ptx, "utf8")
    .split(/\.visible \.entry /)
    .slice(1);
  const code = new Map(bodies.map((body) => [body.match(/^\w+/)?.[0] ?? "", body]));
  const header = readFileSync(join(root, "native/cuda/kernels/kernels.h"), "utf8");
  const names = [...header.matchAll(/^LK_KERNEL (lk_\w+)\(/gm)].map(([, name]) => name);
  assert.deepEqual([...code.keys()].sort(), names.sort());
  const fused = ["lk_weighted_sum", "lk_philox_normals", "lk_resize", "lk_blend", "lk_inject", "lk_inject_drawn"];
  for (const [name, body] of code) {
    assert.doesNotMatch(body, /\.approx|\.full|\.ftz/, name);
    assert.doesNotMatch(body, /fma\.rn\.f64|\bmad\.f|\b(mul|add|sub)\.f(32|64)/, name);
    assert.equal(/fma\.rn\.f32/.test(body), fused.includes(name), name);
  }
}

function run(program, args) {
  try {
    return execFileSync(program, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], maxBuffer: 1 << 26 });
  } catch (error) {
    process.stderr.write(`${error.stdout ?? ""}${error.stderr ?? ""}`);
    throw error;
  }
}
