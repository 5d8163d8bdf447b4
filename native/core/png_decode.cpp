// Inflates the data of a PNG, undoes the filters and writes plain pixels.
#include <cstdlib>
#include <cstring>
#include <memory>

#include "png.h"
#include "spans.h"

namespace latentkit::png {
namespace {

engine_status refuse(const char **reason, const char *why) {
  *reason = why;
  return ENGINE_BAD_FILE;
}

inline int paeth(int a, int b, int c) {
  const int pa = std::abs(b - c), pb = std::abs(a - c), pc = std::abs(a + b - 2 * c);
  return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}

/* Undoes the filter of one row in place; N bytes lie between a byte and its left neighbour. */
template <size_t N>
bool unfilter_row(int filter, uint8_t *row, const uint8_t *above, size_t n) {
  uint8_t left[N] = {}, corner[N] = {};
  switch (filter) {
    case 0: return true;
    case 1:
      for (size_t i = 0; i < n; i += N)
        for (size_t k = 0; k < N; k++) row[i + k] = left[k] = static_cast<uint8_t>(row[i + k] + left[k]);
      return true;
    case 2:
      for (size_t i = 0; i < n; i++) row[i] = static_cast<uint8_t>(row[i] + above[i]);
      return true;
    case 3:
      for (size_t i = 0; i < n; i += N)
        for (size_t k = 0; k < N; k++)
          row[i + k] = left[k] = static_cast<uint8_t>(row[i + k] + ((left[k] + above[i + k]) >> 1));
      return true;
    case 4:
      for (size_t i = 0; i < n; i += N)
        for (size_t k = 0; k < N; k++) {
          row[i + k] = left[k] = static_cast<uint8_t>(row[i + k] + paeth(left[k], above[i + k], corner[k]));
          corner[k] = above[i + k];
        }
      return true;
    default: return false;
  }
}

bool unfilter(int filter, uint8_t *row, const uint8_t *above, size_t n, size_t step) {
  switch (step) {
    case 1: return unfilter_row<1>(filter, row, above, n);
    case 2: return unfilter_row<2>(filter, row, above, n);
    case 3: return unfilter_row<3>(filter, row, above, n);
    case 4: return unfilter_row<4>(filter, row, above, n);
    case 6: return unfilter_row<6>(filter, row, above, n);
    default: return unfilter_row<8>(filter, row, above, n);
  }
}

inline unsigned small_sample(const uint8_t *row, size_t i, int depth) {
  const size_t bit = i * static_cast<size_t>(depth);
  return (row[bit / 8] >> (8 - depth - static_cast<int>(bit % 8))) & ((1u << depth) - 1);
}

bool expand_palette(const Scan &s, const uint8_t *row, size_t pixels, uint8_t *out) {
  const bool has_alpha = s.transparency != nullptr;
  for (size_t i = 0; i < pixels; i++) {
    const unsigned entry = s.depth == 8 ? row[i] : small_sample(row, i, s.depth);
    if (entry >= s.palette_size) return false;
    std::memcpy(out, s.palette + 3 * entry, 3);
    out += 3;
    if (has_alpha) *out++ = entry < s.transparency_len ? s.transparency[entry] : 255;
  }
  return true;
}

/* Grey of 1, 2 or 4 bits, its full range stretched to 0 … 255. */
void expand_small_grey(const Scan &s, const uint8_t *row, size_t pixels, uint8_t *out) {
  const unsigned largest = (1u << s.depth) - 1;
  const unsigned key = s.transparency == nullptr ? 256 : s.transparency[1] & largest;
  for (size_t i = 0; i < pixels; i++) {
    const unsigned sample = small_sample(row, i, s.depth);
    *out++ = static_cast<uint8_t>(sample * (255 / largest));
    if (s.transparency != nullptr) *out++ = sample == key ? 0 : 255;
  }
}

/* 8 bits and one colour that is transparent. */
void expand_keyed8(const Scan &s, const uint8_t *row, size_t pixels, uint8_t *out) {
  const int n = s.samples();
  for (size_t i = 0; i < pixels; i++) {
    bool is_key = true;
    for (int k = 0; k < n; k++) {
      is_key = is_key && row[k] == s.transparency[2 * k + 1];
      *out++ = row[k];
    }
    *out++ = is_key ? 0 : 255;
    row += n;
  }
}

void expand16(const Scan &s, const uint8_t *row, size_t pixels, uint8_t *out) {
  const int n = s.samples();
  const auto put = [&out](unsigned value) {
    const auto sample = static_cast<uint16_t>(value);
    std::memcpy(out, &sample, 2);
    out += 2;
  };
  for (size_t i = 0; i < pixels; i++) {
    const bool is_key = s.transparency != nullptr && std::memcmp(row, s.transparency, static_cast<size_t>(2 * n)) == 0;
    for (int k = 0; k < n; k++, row += 2) put(unsigned{row[0]} << 8 | row[1]);
    if (s.transparency != nullptr) put(is_key ? 0 : 0xFFFF);
  }
}

bool expand(const Scan &s, const uint8_t *row, size_t pixels, uint8_t *out) {
  if (s.colour == kPalette) return expand_palette(s, row, pixels, out);
  if (s.depth == 16) expand16(s, row, pixels, out);
  else if (s.depth < 8) expand_small_grey(s, row, pixels, out);
  else if (s.transparency != nullptr) expand_keyed8(s, row, pixels, out);
  else std::memcpy(out, row, pixels * static_cast<size_t>(s.samples()));
  return true;
}

/* The zlib stream, in one piece; `joined` owns it where it came in several chunks. */
const uint8_t *join_data(engine_cu8 file, const Scan &s, std::unique_ptr<uint8_t[]> *joined) {
  const uint8_t *chunk = file.data + s.first_data;
  if (s.data_chunks == 1) return chunk + 8;
  *joined = fresh(s.data_len);
  size_t at = 0;
  for (size_t k = 0; k < s.data_chunks; k++) {
    const size_t len = read32(chunk);
    std::memcpy(joined->get() + at, chunk + 8, len);
    at += len;
    chunk += len + 12;
  }
  return joined->get();
}

engine_status inflate(engine_cu8 file, const Scan &s, uint8_t *raw, const char **reason) {
  std::unique_ptr<uint8_t[]> joined;
  const uint8_t *data = join_data(file, s, &joined);
  const Inflater inflater(libdeflate_alloc_decompressor());
  if (inflater == nullptr) return ENGINE_NO_MEMORY;
  size_t used = 0;
  switch (libdeflate_zlib_decompress_ex(inflater.get(), data, s.data_len, raw, s.raw_len, &used, nullptr)) {
    case LIBDEFLATE_SUCCESS: break;
    case LIBDEFLATE_SHORT_OUTPUT: return refuse(reason, "the data end early");
    case LIBDEFLATE_INSUFFICIENT_SPACE: return refuse(reason, "the data go on past the picture");
    default: return refuse(reason, "the data are damaged");
  }
  return used == s.data_len ? ENGINE_OK : refuse(reason, "the data go on past the picture");
}

engine_status write_pixels(const Scan &s, uint8_t *raw, uint8_t *out, const char **reason) {
  Pass passes[7];
  const int count = s.passes(passes);
  const size_t step = s.pixel_bits() < 8 ? 1 : s.pixel_bits() / 8;
  const size_t pixel = s.result_pixel_bytes();
  const std::unique_ptr<uint8_t[]> zeros(new uint8_t[(size_t{s.width} * s.pixel_bits() + 7) / 8]());
  const auto line = s.interlaced ? fresh(s.width * pixel) : nullptr;
  for (int k = 0; k < count; k++) {
    const Pass &pass = passes[k];
    const uint8_t *above = zeros.get();
    for (size_t y = 0; y < pass.height; y++) {
      uint8_t *row = raw + 1;
      if (!unfilter(raw[0], row, above, pass.row_bytes, step)) return refuse(reason, "a row has an unknown filter");
      uint8_t *target = out + (pass.y0 + y * pass.dy) * s.width * pixel;
      uint8_t *plain = s.interlaced ? line.get() : target;
      if (!expand(s, row, pass.width, plain)) return refuse(reason, "a pixel names no entry of the palette");
      for (size_t x = 0; s.interlaced && x < pass.width; x++)
        std::memcpy(target + (pass.x0 + x * pass.dx) * pixel, plain + x * pixel, pixel);
      above = row;
      raw += pass.row_bytes + 1;
    }
  }
  return ENGINE_OK;
}

}  // namespace
}  // namespace latentkit::png

extern "C" engine_status engine_png_decode(engine_u8 out, engine_cu8 file, uint64_t max_pixels, const char **reason) {
  using namespace latentkit;
  const char *why = nullptr;
  const engine_status status = guarded([&] {
    png::Scan scan;
    engine_status result = png::scan(file, max_pixels, &scan, &why);
    if (result != ENGINE_OK) return result;
    if (out.len < size_t{scan.width} * scan.height * scan.result_pixel_bytes()) return ENGINE_NO_SPACE;
    const auto raw = png::fresh(scan.raw_len);
    result = png::inflate(file, scan, raw.get(), &why);
    return result == ENGINE_OK ? png::write_pixels(scan, raw.get(), out.data, &why) : result;
  });
  if (reason != nullptr) *reason = why;
  return status;
}
