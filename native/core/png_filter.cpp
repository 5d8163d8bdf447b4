// Filters the rows of a picture on the compute pool, in bands that fit the second cache.
#include "png_filter.h"

#include <algorithm>
#include <memory>

#include "dispatch.h"
#include "parallel.h"
#include "png.h"

namespace latentkit::png {
namespace {

constexpr size_t kBand = 65535; /* bytes with filter bytes: what one stored block holds */
constexpr uint32_t kAdler = 65521;

/* The Adler-32 of two spans from their own: Mark Adler's rule. */
uint32_t joined(uint32_t first, uint32_t second, size_t second_len) {
  const uint64_t a = first & 0xFFFF, b = first >> 16, c = second & 0xFFFF, d = second >> 16, n = second_len % kAdler;
  const uint64_t low = (a + c + kAdler - 1) % kAdler, high = (b + d + n * (a + kAdler - 1)) % kAdler;
  return static_cast<uint32_t>(high << 16 | low);
}

/* make(first, last) fills the lines [first, last) of raw, band by band. */
template <class Make>
Filtered in_bands(const uint8_t *raw, size_t height, size_t line, Make &&make) {
  const size_t rows = std::max<size_t>(1, kBand / line), bands = (height + rows - 1) / rows;
  Filtered result{raw, std::vector<deflate::Unit>(bands), 1};
  std::vector<uint32_t> sums(bands);
  for_chunks(bands, [&](size_t band) {
    const size_t first = band * rows, last = std::min(first + rows, height);
    make(first, last);
    deflate::Unit &unit = result.units[band];
    unit.raw = raw + first * line;
    unit.len = (last - first) * line;
    unit.line = line;
    sums[band] = libdeflate_adler32(1, unit.raw, unit.len);
    deflate::survey(unit);
  });
  for (size_t k = 0; k < bands; k++) result.adler = joined(result.adler, sums[k], result.units[k].len);
  return result;
}

}  // namespace

Filtered filter(uint8_t *raw, const uint8_t *pixels, size_t height, size_t row_bytes, size_t step) {
  const std::unique_ptr<uint8_t[]> above_first(new uint8_t[row_bytes]());
  const size_t line = row_bytes + 1;
  return in_bands(raw, height, line, [&](size_t first, size_t last) {
    for (size_t y = first; y < last; y++) {
      const uint8_t *row = pixels + y * row_bytes;
      kernels().filter_row(raw + y * line, row, y == 0 ? above_first.get() : row - row_bytes, row_bytes, step);
    }
  });
}

Filtered filtered_before(const uint8_t *raw, size_t height, size_t row_bytes) {
  return in_bands(raw, height, row_bytes + 1, [](size_t, size_t) {});
}

}  // namespace latentkit::png
