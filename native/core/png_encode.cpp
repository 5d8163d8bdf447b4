// Filters the rows of a picture, deflates them and writes a PNG. The same bytes on every machine.
#include <cstring>
#include <memory>

#include "png.h"
#include "spans.h"

namespace latentkit::png {
namespace {

constexpr size_t kChunkOverhead = 12;
constexpr size_t kMaxKey = 79;
constexpr uint8_t kColours[5] = {0, kGrey, kGreyAlpha, kRgb, kRgba};

struct FreeDeflater {
  void operator()(libdeflate_compressor *c) const { libdeflate_free_compressor(c); }
};

typedef uint8_t Bytes16 __attribute__((vector_size(16)));
typedef uint16_t Words8 __attribute__((vector_size(16)));

/* Sum of the bytes' distances from 0, modulo 256: small for rows that deflate well. */
uint64_t cost(const uint8_t *row, size_t n) {
  uint64_t total = 0;
  size_t i = 0;
  while (n - i >= 16) {
    Words8 sums = {};
    for (int k = 0; k < 128 && n - i >= 16; k++, i += 16) {  // 128 * 2 * 128 still fits a word
      Bytes16 v;
      std::memcpy(&v, row + i, 16);
      const Bytes16 negative = -v;
      const Words8 distance = reinterpret_cast<Words8>(v < negative ? v : negative);
      sums += (distance & 0xFF) + (distance >> 8);
    }
    for (int k = 0; k < 8; k++) total += sums[k];
  }
  for (; i < n; i++) total += row[i] < 128 ? row[i] : 256u - row[i];
  return total;
}

void filter_sub(uint8_t *__restrict out, const uint8_t *__restrict row, size_t n, size_t step) {
  std::memcpy(out, row, step);
  for (size_t i = step; i < n; i++) out[i] = static_cast<uint8_t>(row[i] - row[i - step]);
}

void filter_up(uint8_t *__restrict out, const uint8_t *__restrict row, const uint8_t *__restrict above, size_t n) {
  for (size_t i = 0; i < n; i++) out[i] = static_cast<uint8_t>(row[i] - above[i]);
}

void filter_average(uint8_t *__restrict out, const uint8_t *__restrict row, const uint8_t *__restrict above, size_t n,
                    size_t step) {
  for (size_t i = 0; i < step; i++) out[i] = static_cast<uint8_t>(row[i] - (above[i] >> 1));
  for (size_t i = step; i < n; i++) out[i] = static_cast<uint8_t>(row[i] - ((row[i - step] + above[i]) >> 1));
}

void filter_paeth(uint8_t *__restrict out, const uint8_t *__restrict row, const uint8_t *__restrict above, size_t n,
                  size_t step) {
  for (size_t i = 0; i < step; i++) out[i] = static_cast<uint8_t>(row[i] - above[i]);
  for (size_t i = step; i < n; i++) {
    const int16_t a = row[i - step], b = above[i], c = above[i - step];
    const auto p = static_cast<int16_t>(b - c), q = static_cast<int16_t>(a - c), r = static_cast<int16_t>(p + q);
    const auto pa = static_cast<int16_t>(p < 0 ? -p : p), pb = static_cast<int16_t>(q < 0 ? -q : q);
    const auto pc = static_cast<int16_t>(r < 0 ? -r : r);
    const int16_t b_or_c = pb <= pc ? b : c;
    const int16_t nearest = (pa <= pb) & (pa <= pc) ? a : b_or_c;
    out[i] = static_cast<uint8_t>(row[i] - nearest);
  }
}

/* Writes filter byte and filtered row for every row: the filter of least cost, the lowest of equals. */
void filter_rows(uint8_t *out, const uint8_t *pixels, size_t rows, size_t n, size_t step) {
  const auto scratch = fresh(4 * n);
  const std::unique_ptr<uint8_t[]> zeros(new uint8_t[n]());
  const uint8_t *above = zeros.get();
  for (size_t y = 0; y < rows; y++) {
    const uint8_t *row = pixels + y * n;
    const uint8_t *candidates[5] = {row};
    for (size_t k = 0; k < 4; k++) candidates[k + 1] = scratch.get() + k * n;
    filter_sub(scratch.get(), row, n, step);
    filter_up(scratch.get() + n, row, above, n);
    filter_average(scratch.get() + 2 * n, row, above, n, step);
    filter_paeth(scratch.get() + 3 * n, row, above, n, step);
    uint8_t best = 0;
    uint64_t least = cost(row, n);
    for (uint8_t k = 1; k < 5; k++) {
      const uint64_t found = cost(candidates[k], n);
      if (found < least) best = k, least = found;
    }
    *out++ = best;
    std::memcpy(out, candidates[best], n);
    out += n;
    above = row;
  }
}

/* Writes length, name and check sum around `len` bytes that already lie at p + 8; returns the end. */
uint8_t *close_chunk(uint8_t *p, uint32_t type, size_t len) {
  write32(p, static_cast<uint32_t>(len));
  write32(p + 4, type);
  write32(p + 8 + len, libdeflate_crc32(0, p + 4, len + 4));
  return p + len + kChunkOverhead;
}

uint8_t *write_header(uint8_t *p, const engine_png_options &o) {
  std::memcpy(p, kSignature, sizeof kSignature);
  p += sizeof kSignature;
  write32(p + 8, o.width);
  write32(p + 12, o.height);
  const uint8_t rest[5] = {8, kColours[o.channels], 0, 0, 0};
  std::memcpy(p + 16, rest, sizeof rest);
  return close_chunk(p, type_of("IHDR"), 13);
}

uint8_t *write_text(uint8_t *p, const engine_text &text) {
  std::memcpy(p + 8, text.key, text.key_len);
  p[8 + text.key_len] = 0;
  if (text.value_len > 0) std::memcpy(p + 9 + text.key_len, text.value, text.value_len);
  return close_chunk(p, type_of("tEXt"), text.key_len + 1 + text.value_len);
}

bool has_nul(const char *text, size_t len) { return len > 0 && std::memchr(text, 0, len) != nullptr; }

/* Filter bytes and samples; 0 where the options are bad or one data chunk cannot hold them. */
size_t raw_size(const engine_png_options &o) {
  if (o.width == 0 || o.height == 0 || o.width > kMaxChunk || o.height > kMaxChunk) return 0;
  if (o.channels < 1 || o.channels > 4 || o.level < 0 || o.level > 9) return 0;
  size_t size = 0;
  if (__builtin_mul_overflow(size_t{o.width} * static_cast<size_t>(o.channels) + 1, size_t{o.height}, &size)) return 0;
  return size <= kMaxChunk && libdeflate_zlib_compress_bound(nullptr, size) <= kMaxChunk ? size : 0;
}

/* Signature, header, text and end; 0 where a text is bad. */
size_t frame_size(const engine_png_options &o) {
  size_t size = sizeof kSignature + 3 * kChunkOverhead + 13;
  for (size_t k = 0; k < o.text_count; k++) {
    const engine_text &t = o.text[k];
    if (t.key_len == 0 || t.key_len > kMaxKey || t.value_len > kMaxChunk - kMaxKey - 1) return 0;
    if (has_nul(t.key, t.key_len) || has_nul(t.value, t.value_len)) return 0;
    if (__builtin_add_overflow(size, kChunkOverhead + t.key_len + 1 + t.value_len, &size)) return 0;
  }
  return size;
}

engine_status encode(engine_u8 out, engine_cu8 pixels, const engine_png_options &o, size_t *written) {
  const size_t raw_len = raw_size(o);
  const size_t n = size_t{o.width} * static_cast<size_t>(o.channels);
  if (pixels.len != raw_len - o.height) return ENGINE_BAD_LENGTH;
  if (out.len < frame_size(o)) return ENGINE_NO_SPACE;
  const auto raw = fresh(raw_len);
  filter_rows(raw.get(), pixels.data, o.height, n, static_cast<size_t>(o.channels));

  uint8_t *p = write_header(out.data, o);
  for (size_t k = 0; k < o.text_count; k++) p = write_text(p, o.text[k]);
  const std::unique_ptr<libdeflate_compressor, FreeDeflater> deflater(libdeflate_alloc_compressor(o.level));
  if (deflater == nullptr) return ENGINE_NO_MEMORY;
  const size_t room = static_cast<size_t>(out.data + out.len - p) - 2 * kChunkOverhead;
  const size_t len = libdeflate_zlib_compress(deflater.get(), raw.get(), raw_len, p + 8, room);
  if (len == 0) return ENGINE_NO_SPACE;
  p = close_chunk(p, type_of("IDAT"), len);
  p = close_chunk(p, type_of("IEND"), 0);
  *written = static_cast<size_t>(p - out.data);
  return ENGINE_OK;
}

}  // namespace
}  // namespace latentkit::png

extern "C" size_t engine_png_bound(const engine_png_options *options) {
  using namespace latentkit::png;
  const size_t raw = raw_size(*options), frame = frame_size(*options);
  size_t bound = 0;
  if (raw == 0 || frame == 0) return 0;
  return __builtin_add_overflow(libdeflate_zlib_compress_bound(nullptr, raw), frame, &bound) ? 0 : bound;
}

extern "C" engine_status engine_png_encode(engine_u8 out, engine_cu8 pixels, const engine_png_options *options,
                                           size_t *written) {
  *written = 0;
  if (engine_png_bound(options) == 0) return ENGINE_BAD_ARGUMENT;
  return latentkit::guarded([&] { return latentkit::png::encode(out, pixels, *options, written); });
}
