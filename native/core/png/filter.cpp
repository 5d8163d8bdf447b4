// Filters the rows of a picture on the compute pool, in bands that fit the second cache.
#include "filter.h"

#include <algorithm>

#include "png.h"
#include "runtime/dispatch.h"
#include "runtime/parallel.h"

namespace latentkit::png {
namespace {

constexpr uint32_t kAdler = 65521;

/* The Adler-32 of two spans from their own: Mark Adler's rule. */
uint32_t joined(uint32_t first, uint32_t second, size_t second_len) {
  const uint64_t a = first & 0xFFFF, b = first >> 16, c = second & 0xFFFF, d = second >> 16, n = second_len % kAdler;
  const uint64_t low = (a + c + kAdler - 1) % kAdler, high = (b + d + n * (a + kAdler - 1)) % kAdler;
  return static_cast<uint32_t>(high << 16 | low);
}

/* make(band) fills the lines of each band. */
template <class Make>
Filtered in_bands(const uint8_t *lines, size_t height, size_t line, bool is_surveyed, Make &&make) {
  const size_t rows = std::max<size_t>(1, kBand / line), count = (height + rows - 1) / rows;
  Filtered result{nullptr, std::vector<Band>(count), std::vector<deflate::Unit>(count), std::vector<uint32_t>(count)};
  for_chunks(count, [&](size_t k) {
    const Band band = {k * rows, std::min(k * rows + rows, height)};
    make(band);
    deflate::Unit &unit = result.units[k];
    unit.raw = lines + band.first * line;
    unit.len = (band.last - band.first) * line;
    unit.line = line;
    result.bands[k] = band;
    result.sums[k] = libdeflate_adler32(1, unit.raw, unit.len);
    if (is_surveyed) deflate::survey(unit);
    else deflate::count_bytes(unit);
  });
  return result;
}

}  // namespace

uint32_t Filtered::adler() const {
  uint32_t sum = 1;
  for (size_t k = 0; k < units.size(); k++) sum = joined(sum, sums[k], units[k].len);
  return sum;
}

Rows::Rows(const Picture &picture) : picture_(picture), zeros_(new uint8_t[picture.row_bytes]()) {}

void Rows::write_cheapest(uint8_t *line, size_t y) const {
  kernels().filter_row(line, row(y), above(y), picture_.row_bytes, picture_.step);
}

void Rows::write_by(int filter, uint8_t *line, size_t y) const {
  kernels().filter_row_by(filter, line, row(y), above(y), picture_.row_bytes, picture_.step);
}

void Rows::write_cheapest(uint8_t *lines, const Band &band) const {
  for (size_t y = band.first; y < band.last; y++) write_cheapest(lines + (y - band.first) * picture_.line(), y);
}

void Rows::write_by(int filter, uint8_t *lines, const Band &band) const {
  for (size_t y = band.first; y < band.last; y++) write_by(filter, lines + (y - band.first) * picture_.line(), y);
}

Filtered filter_rows(const Rows &rows, bool is_surveyed) {
  const size_t line = rows.picture().line();
  Scratch memory = scratch(line * rows.picture().height);
  uint8_t *const lines = memory.get();
  const auto make = [&](const Band &band) { rows.write_cheapest(lines + band.first * line, band); };
  Filtered result = in_bands(lines, rows.picture().height, line, is_surveyed, make);
  result.memory = std::move(memory);
  return result;
}

Filtered filtered_before(const uint8_t *lines, size_t height, size_t row_bytes, bool is_surveyed) {
  return in_bands(lines, height, row_bytes + 1, is_surveyed, [](const Band &) {});
}

Filtered filter_rows_by(const Rows &rows, int filter) {
  const size_t line = rows.picture().line();
  Scratch memory = scratch(line * rows.picture().height);
  uint8_t *const lines = memory.get();
  const auto make = [&](const Band &band) { rows.write_by(filter, lines + band.first * line, band); };
  Filtered result = in_bands(lines, rows.picture().height, line, false, make);
  result.memory = std::move(memory);
  return result;
}

}  // namespace latentkit::png
