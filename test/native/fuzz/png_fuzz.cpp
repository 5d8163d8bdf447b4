// The PNG reader on files with repaired check sums, on pictures built around hostile rows, and on what the writer
// wrote.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "engine.h"
#include "expect.h"
#include "png/png_files.h"

using namespace png_files;

namespace {

constexpr uint64_t kMaxPixels = 1 << 18;
constexpr const char *kSets[] = {"baseline", "avx2", "avx512"};

/* The frames of a file that has been read as a still picture. */
void decode_frames(engine_cu8 file, const engine_png_info &still) {
  for (const uint32_t most : {1u, 2u, UINT32_MAX}) {
    engine_png_info info{};
    const char *reason = nullptr;
    if (engine_png_inspect_frames(file, kMaxPixels, most, &info, &reason) != ENGINE_OK) {
      EXPECT(reason != nullptr && most > 1);
      continue;
    }
    EXPECT(info.frames >= 1 && info.frames <= most && info.bytes == still.bytes * info.frames);
    EXPECT(uint64_t{info.width} * info.height * info.frames <= kMaxPixels);
    Bytes pixels(info.bytes);
    const engine_status status =
        engine_png_decode_frames({pixels.data(), pixels.size()}, file, kMaxPixels, most, &reason);
    EXPECT(status == ENGINE_OK || reason != nullptr);
  }
}

/* Reads a file with every instruction set; the pixels, or nothing if it is refused. */
Bytes decode(const Bytes &file) {
  const Bytes exact(file.begin(), file.end());
  const engine_cu8 span{exact.data(), exact.size()};
  Bytes first;
  engine_status expected = ENGINE_OK;
  for (const char *set : kSets) {
    if (!engine_isa_supported(set)) continue;
    EXPECT(engine_set_isa(set) == ENGINE_OK);
    engine_png_info info{};
    const char *reason = nullptr;
    if (engine_png_inspect(span, kMaxPixels, &info, &reason) != ENGINE_OK) {
      EXPECT(reason != nullptr);
      return {};
    }
    EXPECT(info.width > 0 && info.height > 0 && uint64_t{info.width} * info.height <= kMaxPixels);
    Bytes pixels(info.bytes);
    const engine_status status = engine_png_decode({pixels.data(), pixels.size()}, span, kMaxPixels, &reason);
    EXPECT(status == ENGINE_OK || reason != nullptr);
    if (status != ENGINE_OK) pixels.clear();
    if (set == kSets[0]) first = pixels, expected = status;
    EXPECT(status == expected && pixels == first);
    decode_frames(span, info);
    Bytes text(info.text_bytes);
    size_t written = 0;
    if (engine_png_text({text.data(), text.size()}, span, &written, &reason) == ENGINE_OK)
      EXPECT(written <= text.size());
  }
  return first;
}

/* A file of the header that the first bytes choose, the others its palette, its transparency and its rows. */
Bytes built(const uint8_t *data, size_t len) {
  if (len < 6) return {};
  static constexpr uint8_t kColours[5] = {0, 2, 3, 4, 6}, kSamples[5] = {1, 3, 1, 2, 4}, kDepths[5] = {1, 2, 4, 8, 16};
  const size_t c = data[2] % 5;
  const uint8_t colour = kColours[c], depth = kDepths[data[3] % 5];
  const uint32_t width = 1 + data[0], height = 1 + data[1] % 64;
  const bool interlaced = data[4] & 1, has_key = data[4] & 2, split = data[4] & 4;
  const bool animated = data[4] & 8, in_front = data[4] & 16, turned = data[4] & 32;
  const size_t entries = 1 + data[5] % 256;
  data += 6, len -= 6;
  const auto take = [&](size_t n) {
    Bytes some(n);
    const size_t had = std::min(n, len);
    std::copy_n(data, had, some.begin());
    data += had, len -= had;
    return some;
  };
  Bytes file = signature();
  chunk(file, "IHDR", header(width, height, depth, colour, interlaced));
  if (colour == 3) chunk(file, "PLTE", take(3 * entries));
  if (has_key) chunk(file, "tRNS", take(colour == 3 ? entries : 2u * kSamples[c]));
  const auto rows = [&](uint32_t w, uint32_t h) {
    size_t size = 0;
    static constexpr uint32_t kPasses[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                               {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
    std::vector<size_t> lines;
    for (int k = 0; k < (interlaced ? 7 : 1); k++) {
      const uint32_t x0 = interlaced ? kPasses[k][0] : 0, y0 = interlaced ? kPasses[k][1] : 0;
      const uint32_t dx = interlaced ? kPasses[k][2] : 1, dy = interlaced ? kPasses[k][3] : 1;
      if (w <= x0 || h <= y0) continue;
      const size_t line = 1 + ((w - x0 + dx - 1) / dx * size_t{kSamples[c]} * depth + 7) / 8;
      for (size_t y = (h - y0 + dy - 1) / dy; y > 0; y--) lines.push_back(size), size += line;
    }
    Bytes raw = take(size);
    // filters that do not exist end the reading: most rows get one that does
    for (const size_t at : lines) raw[at] = raw[at] == 255 ? 255 : raw[at] % 5;
    return stored(raw);
  };
  if (turned) chunk(file, "eXIf", take(40));
  uint32_t sequence = 0;
  const auto control = [&](uint32_t w, uint32_t h, uint32_t x, uint32_t y) {
    Bytes data;
    for (const uint32_t value : {sequence++, w, h, x, y, 0u}) put32(data, value);
    const Bytes how = take(2);
    data.insert(data.end(), {uint8_t(how[0] % 4), uint8_t(how[1] % 3)});
    chunk(file, "fcTL", data);
  };
  const uint32_t frames = animated ? 1 + entries % 4 : 0;
  if (animated) {
    Bytes data;
    put32(data, frames + in_front);
    put32(data, 0);
    chunk(file, "acTL", data);
    if (!in_front) control(width, height, 0, 0);
  }
  const Bytes packed = rows(width, height);
  const size_t cut = split ? packed.size() / 3 : packed.size();
  chunk(file, "IDAT", Bytes(packed.begin(), packed.begin() + static_cast<long>(cut)));
  if (split) chunk(file, "IDAT", Bytes(packed.begin() + static_cast<long>(cut), packed.end()));
  for (uint32_t k = in_front ? 0 : 1; k < frames + in_front; k++) {
    const Bytes box = take(4);
    const uint32_t x = box[0] % width, y = box[1] % height;
    const uint32_t w = 1 + box[2] % (width - x), h = 1 + box[3] % (height - y);
    control(w, h, x, y);
    Bytes data;
    put32(data, sequence++);
    const Bytes more = rows(w, h);
    data.insert(data.end(), more.begin(), more.end());
    chunk(file, "fdAT", data);
  }
  chunk(file, "IEND", {});
  return file;
}

/* Pixels written at any level and read back. */
void round_trip(const uint8_t *data, size_t len) {
  if (len < 5) return;
  const int channels = 1 + data[0] % 4, level = data[1] % 10;
  const auto width = static_cast<uint32_t>(1 + data[2] + (data[3] > 240 ? 256 * data[3] : 0));
  const size_t row = width * static_cast<size_t>(channels);
  const auto height = static_cast<uint32_t>(1 + std::min<size_t>((len - 4) / row, 255));
  Bytes pixels(row * height);
  for (size_t i = 0; i < pixels.size(); i++) pixels[i] = data[4 + i % (len - 4)];
  const engine_png_options options{width, height, channels, level, 8, nullptr, 0};
  Bytes file(engine_png_bound(&options));
  EXPECT(!file.empty());
  size_t written = 0;
  EXPECT(engine_png_encode({file.data(), file.size()}, {pixels.data(), pixels.size()}, &options, &written) ==
         ENGINE_OK);
  file.resize(written);
  EXPECT(decode(file) == pixels);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
  if (len < 2) return 0;
  EXPECT(engine_set_threads(1 + (data[0] >> 7)) == ENGINE_OK);
  const uint8_t what = data[0] & 3;
  data++, len--;
  if (what == 1) {
    decode(built(data, len));
  } else if (what == 2) {
    round_trip(data, len);
  } else {
    Bytes file = signature();
    file.insert(file.end(), data, data + len);
    if (what == 0) repair(file);
    decode(file);
  }
  return 0;
}
