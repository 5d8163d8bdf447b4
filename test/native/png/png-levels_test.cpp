// The levels of a PNG file: each no larger than the one below, the same pixels and the same bytes everywhere.
#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "check.h"
#include "libdeflate.h"
#include "runtime/runtime.h"

namespace {

using Bytes = std::vector<uint8_t>;

constexpr uint64_t kMaxPixels = 1 << 22;

struct Size {
  uint32_t width, height;
  int channels;

  size_t bytes() const { return size_t{width} * height * static_cast<size_t>(channels); }
};

Bytes encode(const Bytes &pixels, const Size &size, int level) {
  const engine_png_options options{size.width, size.height, size.channels, level, 8, nullptr, 0};
  Bytes file(engine_png_bound(&options));
  size_t written = 0;
  CHECK(engine_png_encode({file.data(), file.size()}, {pixels.data(), pixels.size()}, &options, &written) == ENGINE_OK);
  file.resize(written);
  return file;
}

bool decodes_to(const Bytes &file, const Bytes &pixels) {
  Bytes read(pixels.size());
  const char *reason = nullptr;
  return engine_png_decode({read.data(), read.size()}, {file.data(), file.size()}, kMaxPixels, &reason) == ENGINE_OK &&
         read == pixels;
}

enum Kind { kNatural, kNoise, kFlat, kSoft, kText, kFewColours, kKinds };

Bytes picture(const Size &size, Kind kind, uint32_t seed) {
  std::mt19937 random(seed);
  Bytes pixels(size.bytes());
  std::array<uint8_t, 256> glyphs;
  for (uint8_t &byte : glyphs) byte = random() % 5 < 2 ? 20 : 245;
  std::array<std::array<uint8_t, 4>, 40> colours;
  for (auto &colour : colours)
    for (uint8_t &sample : colour) sample = static_cast<uint8_t>(random());
  size_t i = 0;
  for (uint32_t y = 0; y < size.height; y++)
    for (uint32_t x = 0; x < size.width; x++) {
      const double wave = std::sin(x / 31.0 + 1) * std::cos(y / 23.0);
      const auto bump = static_cast<int>(random() % 4);
      for (size_t c = 0; c < static_cast<size_t>(size.channels); c++, i++) {
        int value = 0;
        switch (kind) {
          case kNatural: value = static_cast<int>(120 + 60 * wave) + bump + static_cast<int>(random() % 5); break;
          case kNoise: value = static_cast<int>(random()); break;
          case kFlat: value = static_cast<int>(40 + 50 * c); break;
          case kSoft: value = static_cast<int>(128 + 90 * wave + static_cast<double>(c)) + (random() % 20 == 0); break;
          case kText: value = glyphs[(x / 9 * 7 + y / 16 * 3) % 4 * 64 + y % 8 * 8 + x % 8]; break;
          default: value = colours[static_cast<size_t>(20 + 19 * wave)][c]; break;
        }
        pixels[i] = static_cast<uint8_t>(value);
      }
    }
  return pixels;
}

void no_level_is_larger_than_the_one_below(const Size &size, Kind kind, uint32_t seed) {
  const Bytes pixels = picture(size, kind, seed);
  size_t below = SIZE_MAX;
  for (int level = 1; level <= 9; level++) {
    const Bytes file = encode(pixels, size, level);
    CHECK(decodes_to(file, pixels));
    if (file.size() > below)
      std::fprintf(stderr, "%u x %u x %d, kind %d, level %d: %zu after %zu\n", size.width, size.height, size.channels,
                   kind, level, file.size(), below);
    CHECK(file.size() <= below);
    below = file.size();
  }
}

void small_pictures() {
  std::mt19937 random(4);
  for (uint32_t round = 0; round < 120; round++) {
    const Size size = {static_cast<uint32_t>(1 + random() % 90), static_cast<uint32_t>(1 + random() % 90),
                       static_cast<int>(1 + round % 4)};
    no_level_is_larger_than_the_one_below(size, static_cast<Kind>(random() % kKinds), round);
  }
}

void large_pictures() {
  for (int kind = 0; kind < kKinds; kind++)
    for (int channels = 1; channels <= 4; channels++)
      no_level_is_larger_than_the_one_below({300, 200, channels}, static_cast<Kind>(kind), 5);
}

void same_bytes_everywhere() {
  const Size size = {350, 160, 3};
  for (int kind = 0; kind < kKinds; kind++)
    for (int level = 1; level <= 9; level++) {
      const Bytes pixels = picture(size, static_cast<Kind>(kind), 6);
      everywhere([&] { return encode(pixels, size, level); });
    }
}

/* A row longer than a band, one picture as wide as a pixel, one row. */
void odd_shapes() {
  for (const Size &size : {Size{70000, 3, 3}, Size{1, 50000, 4}, Size{200000, 1, 1}, Size{30000, 4, 2}})
    for (const Kind kind : {kNatural, kText, kFewColours})
      for (const int level : {1, 2, 3, 4, 5, 8, 9}) {
        const Bytes pixels = picture(size, kind, 7);
        CHECK(decodes_to(encode(pixels, size, level), pixels));
      }
}

/* Bytes that libdeflate at level 9 makes of rows with the filters of the least sums. */
size_t filtered_size(const Bytes &pixels, const Size &size) {
  const auto step = static_cast<size_t>(size.channels);
  const size_t row = size.width * step;
  const Bytes zeros(row);
  Bytes lines((row + 1) * size.height);
  for (size_t y = 0; y < size.height; y++) {
    const uint8_t *here = pixels.data() + y * row;
    latentkit::kernels().filter_row(lines.data() + y * (row + 1), here, y == 0 ? zeros.data() : here - row, row, step);
  }
  libdeflate_compressor *deflater = libdeflate_alloc_compressor(9);
  Bytes out(libdeflate_zlib_compress_bound(deflater, lines.size()));
  const size_t len = libdeflate_zlib_compress(deflater, lines.data(), lines.size(), out.data(), out.size());
  libdeflate_free_compressor(deflater);
  return len;
}

/* Filters spoil what comes again in pictures of few colours. */
void few_colours_are_not_filtered() {
  const Size size = {400, 300, 3};
  std::mt19937 random(8);
  std::array<std::array<uint8_t, 3>, 32> colours;
  for (auto &colour : colours)
    for (uint8_t &sample : colour) sample = static_cast<uint8_t>(random());
  Bytes pixels(size.bytes());
  for (size_t i = 0; i < pixels.size(); i += 3) {
    const size_t x = i / 3 % size.width, y = i / 3 / size.width;
    // dithered: the next colour for some of the pixels
    const size_t level = (x + y) * 31 / 700 + (random() % 4 == 0);
    std::copy_n(colours[std::min<size_t>(level, 31)].begin(), 3, &pixels[i]);
  }
  const Bytes file = encode(pixels, size, 4);
  CHECK(decodes_to(file, pixels));
  CHECK(file.size() < filtered_size(pixels, size) * 7 / 8);
}

}  // namespace

int main() {
  small_pictures();
  large_pictures();
  same_bytes_everywhere();
  odd_shapes();
  few_colours_are_not_filtered();
  return report();
}
