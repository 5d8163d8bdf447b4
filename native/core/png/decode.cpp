// Inflates the data of a PNG, undoes the filters and writes plain pixels.
#include <algorithm>
#include <cstring>
#include <memory>

#include "png/png.h"
#include "runtime/runtime.h"

namespace latentkit::png {
namespace {

inline unsigned small_sample(const uint8_t *row, size_t i, int depth) {
  const size_t bit = i * static_cast<size_t>(depth);
  return (row[bit / 8] >> (8 - depth - static_cast<int>(bit % 8))) & ((1u << depth) - 1);
}

/* The entries of a palette, four bytes each; alpha is 255 if the file gives none. */
class Palette {
 public:
  explicit Palette(const Scan &s) : size_(s.palette_size), channels_(s.transparency == nullptr ? 3 : 4) {
    for (size_t i = 0; i < size_; i++) {
      std::memcpy(entries_[i], s.palette + 3 * i, 3);
      entries_[i][3] = i < s.transparency_len ? s.transparency[i] : 255;
    }
  }

  /* False if a pixel is outside the palette. */
  bool expand(const uint8_t *row, int depth, size_t pixels, uint8_t *out) const {
    if (channels_ == 4) return expand_to<4>(row, depth, pixels, out);
    return expand_to<3>(row, depth, pixels, out);
  }

 private:
  template <size_t N>
  bool expand_to(const uint8_t *row, int depth, size_t pixels, uint8_t *out) const {
    unsigned largest = 0;
    const auto put = [&](size_t i, size_t bytes) {
      const unsigned entry = depth == 8 ? row[i] : small_sample(row, i, depth);
      largest = std::max(largest, entry);
      std::memcpy(out + N * i, entries_[entry], bytes);
    };
    // four bytes at once: the next pixel overwrites the fourth of a pixel of three
    for (size_t i = 0; i + 1 < pixels; i++) put(i, 4);
    if (pixels > 0) put(pixels - 1, N);
    return largest < size_;
  }

  uint8_t entries_[256][4] = {};
  size_t size_;
  int channels_;
};

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

/* 8 bits, N samples a pixel, and one colour that is transparent. */
template <size_t N>
void expand_keyed8(const Scan &s, const uint8_t *row, size_t pixels, uint8_t *out) {
  for (size_t i = 0; i < pixels; i++, row += N, out += N + 1) {
    bool is_key = true;
    for (size_t k = 0; k < N; k++) {
      is_key &= row[k] == s.transparency[2 * k + 1];
      out[k] = row[k];
    }
    out[N] = is_key ? 0 : 255;
  }
}

void expand16(const uint8_t *row, size_t samples, uint8_t *out) {
  for (size_t i = 0; i < samples; i++) {
    const auto sample = static_cast<uint16_t>(unsigned{row[2 * i]} << 8 | row[2 * i + 1]);
    std::memcpy(out + 2 * i, &sample, 2);
  }
}

void expand_keyed16(const Scan &s, const uint8_t *row, size_t pixels, uint8_t *out) {
  const auto samples = static_cast<size_t>(s.samples());
  for (size_t i = 0; i < pixels; i++, row += 2 * samples, out += 2 * samples + 2) {
    expand16(row, samples, out);
    const uint16_t alpha = std::memcmp(row, s.transparency, 2 * samples) == 0 ? 0 : 0xFFFF;
    std::memcpy(out + 2 * samples, &alpha, 2);
  }
}

bool expand(const Scan &s, const Palette &palette, const uint8_t *row, size_t pixels, uint8_t *out) {
  const bool has_key = s.transparency != nullptr;
  if (s.colour == kPalette) return palette.expand(row, s.depth, pixels, out);
  if (s.depth == 16 && has_key) expand_keyed16(s, row, pixels, out);
  else if (s.depth == 16) expand16(row, pixels * static_cast<size_t>(s.samples()), out);
  else if (s.depth < 8) expand_small_grey(s, row, pixels, out);
  else if (has_key && s.colour == kGrey) expand_keyed8<1>(s, row, pixels, out);
  else if (has_key) expand_keyed8<3>(s, row, pixels, out);
  else std::memcpy(out, row, pixels * static_cast<size_t>(s.samples()));
  return true;
}

/* The zlib stream, in one piece; `joined` owns it if it came in several chunks. */
const uint8_t *join_data(engine_cu8 file, const Scan &s, Scratch *joined) {
  const uint8_t *chunk = file.data + s.first_data;
  if (s.data_chunks == 1) return chunk + 8 + s.data_skip;
  *joined = scratch(s.data_len);
  const uint32_t type = read32(chunk + 4);
  size_t at = 0;
  for (size_t left = s.data_chunks; left > 0; chunk += read32(chunk) + size_t{12}) {
    if (read32(chunk + 4) != type) continue;
    const size_t len = read32(chunk) - s.data_skip;
    std::memcpy(joined->get() + at, chunk + 8 + s.data_skip, len);
    at += len;
    left--;
  }
  return joined->get();
}

engine_status inflate(engine_cu8 file, const Scan &s, uint8_t *raw, const char **reason) {
  Scratch joined;
  const uint8_t *data = join_data(file, s, &joined);
  const Inflater inflater(libdeflate_alloc_decompressor());
  if (inflater == nullptr) return ENGINE_NO_MEMORY;
  size_t used = 0;
  switch (libdeflate_zlib_decompress_ex(inflater.get(), data, s.data_len, raw, s.raw_len, &used, nullptr)) {
    case LIBDEFLATE_SUCCESS: break;
    case LIBDEFLATE_SHORT_OUTPUT: return refuse(reason, "the data ends early");
    case LIBDEFLATE_INSUFFICIENT_SPACE: return refuse(reason, "there is more data than the picture needs");
    default: return refuse(reason, "the data is damaged");
  }
  return used == s.data_len ? ENGINE_OK : refuse(reason, "there is more data than the picture needs");
}

engine_status write_pixels(const Scan &s, uint8_t *raw, uint8_t *out, const char **reason) {
  Pass passes[7];
  const int count = s.passes(passes);
  const size_t step = s.pixel_bits() < 8 ? 1 : s.pixel_bits() / 8;
  const size_t pixel = s.result_pixel_bytes();
  const std::unique_ptr<uint8_t[]> zeros(new uint8_t[(size_t{s.width} * s.pixel_bits() + 7) / 8]());
  const auto line = s.interlaced ? fresh(s.width * pixel) : nullptr;
  const Palette palette(s);
  const bool is_plain = !s.interlaced && s.depth == 8 && s.colour != kPalette && s.transparency == nullptr;
  for (int k = 0; k < count; k++) {
    const Pass &pass = passes[k];
    const uint8_t *above = zeros.get();
    for (size_t y = 0; y < pass.height; y++, raw += pass.row_bytes + 1) {
      if (raw[0] > 4) return refuse(reason, "a row has an unknown filter");
      uint8_t *target = out + (pass.y0 + y * pass.dy) * s.width * pixel;
      // otherwise over its own filter byte, one byte earlier
      uint8_t *row = is_plain ? target : raw;
      kernels().unfilter(raw[0], row, raw + 1, above, pass.row_bytes, step);
      above = row;
      if (is_plain) continue;
      uint8_t *expanded = s.interlaced ? line.get() : target;
      if (!expand(s, palette, row, pass.width, expanded)) return refuse(reason, "a pixel is outside the palette");
      for (size_t x = 0; s.interlaced && x < pass.width; x++)
        std::memcpy(target + (pass.x0 + x * pass.dx) * pixel, expanded + x * pixel, pixel);
    }
  }
  return ENGINE_OK;
}

}  // namespace

engine_status decode(engine_cu8 file, const Scan &s, uint8_t *out, const char **reason) {
  const Scratch raw = scratch(s.raw_len);
  const engine_status status = inflate(file, s, raw.get(), reason);
  return status == ENGINE_OK ? write_pixels(s, raw.get(), out, reason) : status;
}

void decode_zero(const Scan &s, uint8_t *out) {
  const uint8_t row[8] = {};
  expand(s, Palette(s), row, 1, out);
}

}  // namespace latentkit::png

extern "C" engine_status engine_png_decode(engine_u8 out, engine_cu8 file, uint64_t max_pixels, const char **reason) {
  using namespace latentkit;
  const char *why = nullptr;
  const engine_status status = guarded([&] {
    png::Scan scan;
    const engine_status result = png::scan(file, max_pixels, &scan, &why);
    if (result != ENGINE_OK) return result;
    if (out.len < size_t{scan.width} * scan.height * scan.result_pixel_bytes()) return ENGINE_NO_SPACE;
    return png::decode(file, scan, out.data, &why);
  });
  if (reason != nullptr) *reason = why;
  return status;
}
