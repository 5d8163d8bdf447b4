// engine_png_deflate: rows filtered before give the very file of engine_png_encode.
#include "check.h"
#include "runtime/dispatch.h"

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

}  // namespace

int main() {
  same_files();
  refused();
  return report();
}
