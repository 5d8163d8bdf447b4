// Filters of rows undone by every kernel, and engine_png_deflate: rows filtered before give the very file of
// engine_png_encode.
#include <cstdlib>

#include "check.h"
#include "runtime/runtime.h"

namespace {

using Bytes = std::vector<uint8_t>;

Bytes filtered(const Bytes &pixels, size_t row, size_t height, size_t step) {
  const Bytes first(row);
  Bytes lines((row + 1) * height);
  for (size_t y = 0; y < height; y++) {
    const uint8_t *here = pixels.data() + y * row;
    latentkit::kernels().filter_row(lines.data() + y * (row + 1), here, y == 0 ? first.data() : here - row, row, step);
  }
  return lines;
}

template <class Encode>
Bytes file_of(const engine_png_options &options, const Bytes &bytes, Encode &&encode) {
  Bytes file(engine_png_bound(&options));
  size_t written = 0;
  CHECK(encode({file.data(), file.size()}, {bytes.data(), bytes.size()}, &options, &written) == ENGINE_OK);
  file.resize(written);
  return file;
}

void same_files() {
  const engine_text text[] = {{"prompt", "{}", 6, 2}, {"receipt", "", 7, 0}};
  uint32_t seed = 1;
  for (int channels = 1; channels <= 4; channels++)
    for (const uint32_t width : {1u, 2u, 17u, 700u})
      for (const uint32_t height : {1u, 2u, 31u, 200u})
        for (const int level : {0, 1, 2, 3, 4, 5, 9}) {
          const auto step = static_cast<size_t>(channels);
          const size_t row = width * step;
          const std::vector<float> noise = numbers(row * height, seed++, 40.0f);
          Bytes pixels(row * height);
          // smooth with noise, or of few colours
          for (size_t i = 0; i < pixels.size(); i++)
            pixels[i] = seed % 2 == 0 ? static_cast<uint8_t>(i / 3 + (i % 5) * (noise[i] > 0))
                                      : static_cast<uint8_t>(i / 40 % 5 * 51 + (noise[i / step] > 39));
          const engine_png_options options{width, height, channels, level, 8, text, 2};
          const Bytes lines = filtered(pixels, row, height, step);
          CHECK(file_of(options, lines, engine_png_deflate) == file_of(options, pixels, engine_png_encode));
        }
}

void refused() {
  const engine_png_options good{2, 2, 3, 4, 8, nullptr, 0}, bad{0, 2, 3, 4, 8, nullptr, 0};
  Bytes lines(14), out(engine_png_bound(&good));
  size_t written = 1;
  const auto status = [&](size_t room, size_t length, const engine_png_options &options) {
    return engine_png_deflate({out.data(), room}, {lines.data(), length}, &options, &written);
  };
  CHECK(status(out.size(), 14, bad) == ENGINE_BAD_ARGUMENT && written == 0);
  CHECK(status(out.size(), 13, good) == ENGINE_BAD_LENGTH && written == 0);
  CHECK(status(out.size(), 14, good) == ENGINE_OK && written > 0);
  const size_t whole = written;
  for (size_t room = 0; room < whole; room++) CHECK(status(room, 14, good) == ENGINE_NO_SPACE && written == 0);
  // no reader knows a filter 5
  lines[7] = 5;
  CHECK(status(out.size(), 14, good) == ENGINE_BAD_ARGUMENT && written == 0);
}

/* The PNG specification's words, byte by byte. */
Bytes expected(int filter, const Bytes &row, const Bytes &above, size_t step) {
  Bytes out(row.size());
  for (size_t i = 0; i < row.size(); i++) {
    const int left = i >= step ? out[i - step] : 0, up = above[i], corner = i >= step ? above[i - step] : 0;
    const int p = left + up - corner;
    const int by_left = std::abs(p - left), by_up = std::abs(p - up), by_corner = std::abs(p - corner);
    const int paeth = by_left <= by_up && by_left <= by_corner ? left : by_up <= by_corner ? up : corner;
    const int added[] = {0, left, up, (left + up) / 2, paeth};
    out[i] = static_cast<uint8_t>(row[i] + added[filter]);
  }
  return out;
}

Bytes octets(size_t n, uint32_t seed, bool extreme) {
  Bytes bytes(n);
  const std::vector<float> from = numbers(n, seed, 128.0f);
  for (size_t i = 0; i < n; i++) {
    bytes[i] = static_cast<uint8_t>(static_cast<int>(from[i]) + 128);
    if (extreme) bytes[i] = bytes[i] < 100 ? 0 : bytes[i] > 156 ? 255 : 128;
  }
  return bytes;
}

void undone() {
  uint32_t seed = 1;
  for (const std::string &isa : supported_isas()) {
    CHECK(engine_set_isa(isa.c_str()) == ENGINE_OK);
    const lk_kernels &kernels = latentkit::kernels();
    for (const size_t step : {1, 2, 3, 4, 6, 8})
      for (const size_t pixels : {1, 2, 3, 4, 5, 16, 21, 22, 64, 65, 333})
        for (int filter = 0; filter <= 4; filter++)
          for (const bool extreme : {false, true}) {
            const size_t n = step * pixels;
            const Bytes row = octets(n, seed++, extreme), above = octets(n, seed++, extreme);
            const Bytes reference = expected(filter, row, above, step);
            Bytes apart(n);
            kernels.unfilter(filter, apart.data(), row.data(), above.data(), n, step);
            CHECK(apart == reference);
            // over its own filter byte, as a row lies in the inflated data
            Bytes in_place(1 + n);
            std::memcpy(in_place.data() + 1, row.data(), n);
            kernels.unfilter(filter, in_place.data(), in_place.data() + 1, above.data(), n, step);
            CHECK(std::memcmp(in_place.data(), reference.data(), n) == 0);
          }
  }
}

}  // namespace

int main() {
  undone();
  same_files();
  refused();
  return report();
}
