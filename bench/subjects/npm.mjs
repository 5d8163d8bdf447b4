// sharp and pngjs, as their users call them. A subject reads its picture and returns the function that is timed.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

/** The subjects of the npm peers that are installed, and their versions. */
export async function peers() {
  const subjects = {};
  const versions = {};
  /** @type {[string, (peer: any) => object, (peer: any) => string][]} */
  const packages = [
    ["sharp", sharpSubjects, (sharp) => `${sharp.versions.sharp} (libvips ${sharp.versions.vips})`],
    ["pngjs", pngjsSubjects, () => createRequire(import.meta.url)("pngjs/package.json").version],
  ];
  for (const [name, make, versionOf] of packages) {
    const loaded = await import(name).catch((error) => {
      if (error.code !== "ERR_MODULE_NOT_FOUND") throw error;
    });
    if (loaded === undefined) continue;
    versions[name] = versionOf(loaded.default);
    for (const [key, subject] of Object.entries(make(loaded.default))) subjects[`${name}.${key}`] = subject;
  }
  return { subjects, versions };
}

function sharpSubjects(sharp) {
  sharp.concurrency(1);
  sharp.cache(false);
  // as latentkit, Pillow and pngjs do, it chooses a filter for each row; without that its files are larger
  const encode = (pixels, size, level, adaptiveFiltering = true) =>
    sharp(pixels, { raw: { width: size, height: size, channels: 3 } })
      .png({ compressionLevel: level, adaptiveFiltering })
      .toBuffer();
  return {
    encodePng({ file, size, level }) {
      const pixels = readFileSync(file);
      return () => encode(pixels, size, level);
    },
    encodePngUnfiltered({ file, size, level }) {
      const pixels = readFileSync(file);
      return () => encode(pixels, size, level, false);
    },
    pngBytes({ file, size, level }) {
      const pixels = readFileSync(file);
      return async () => (await encode(pixels, size, level)).length;
    },
    decodePng({ file }) {
      const bytes = readFileSync(file);
      return () => sharp(bytes).raw().toBuffer();
    },
    encodeFloats({ file, size, level, count }) {
      const image = toFloats(readFileSync(file));
      return () => Promise.all(Array.from({ length: count }, () => encode(toBytes(image), size, level)));
    },
  };
}

function pngjsSubjects({ PNG }) {
  const encode = (data, size, level) =>
    PNG.sync.write(
      { width: size, height: size, data },
      { deflateLevel: level, inputColorType: 2, colorType: 2, inputHasAlpha: false },
    );
  return {
    encodePng({ file, size, level }) {
      const pixels = readFileSync(file);
      return () => encode(pixels, size, level);
    },
    pngBytes({ file, size, level }) {
      const pixels = readFileSync(file);
      return () => encode(pixels, size, level).length;
    },
    decodePng({ file }) {
      const bytes = readFileSync(file);
      return () => PNG.sync.read(bytes);
    },
    encodeFloats({ file, size, level, count }) {
      const image = toFloats(readFileSync(file));
      return () => {
        for (let i = 0; i < count; i++) encode(toBytes(image), size, level);
      };
    },
  };
}

const toFloats = (bytes) => Float32Array.from(bytes, (value) => value / 255);

/** A model's floats as bytes, as users of these packages write it. */
function toBytes(floats) {
  const bytes = Buffer.allocUnsafe(floats.length);
  for (let i = 0; i < floats.length; i++) {
    const value = floats[i] * 255;
    bytes[i] = value < 0 ? 0 : value > 255 ? 255 : value;
  }
  return bytes;
}
