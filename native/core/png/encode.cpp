// Writes a PNG around deflated rows. The same bytes on every machine.
#include <cstring>

#include "levels.h"
#include "png.h"
#include "runtime/spans.h"

namespace latentkit::png {
namespace {

constexpr size_t kChunkOverhead = 12;
constexpr size_t kMaxKey = 79;
constexpr uint8_t kColours[5] = {0, kGrey, kGreyAlpha, kRgb, kRgba};

/* Writes length, name and check sum around `len` bytes that already lie at p + 8; returns the end. */
uint8_t *close_chunk(uint8_t *p, uint32_t type, size_t len) {
  write32(p, static_cast<uint32_t>(len));
  write32(p + 4, type);
  write32(p + 8 + len, libdeflate_crc32(0, p + 4, len + 4));
  return p + len + kChunkOverhead;
}

size_t sample_bytes(const engine_png_options &o) { return o.bit_depth == 16 ? 2 : 1; }
size_t pixel_bytes(const engine_png_options &o) { return static_cast<size_t>(o.channels) * sample_bytes(o); }

uint8_t *write_header(uint8_t *p, const engine_png_options &o) {
  std::memcpy(p, kSignature, sizeof kSignature);
  p += sizeof kSignature;
  write32(p + 8, o.width);
  write32(p + 12, o.height);
  const uint8_t rest[5] = {static_cast<uint8_t>(8 * sample_bytes(o)), kColours[o.channels], 0, 0, 0};
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
  if (o.bit_depth != 8 && o.bit_depth != 16) return 0;
  size_t size = 0;
  if (__builtin_mul_overflow(size_t{o.width} * pixel_bytes(o) + 1, size_t{o.height}, &size)) return 0;
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

size_t row_bytes(const engine_png_options &o) { return size_t{o.width} * pixel_bytes(o); }

/* The file around the stream that compress(to, room) writes. */
template <class Compress>
engine_status write(engine_u8 out, const engine_png_options &o, size_t *written, Compress &&compress) {
  if (out.len < frame_size(o)) return ENGINE_NO_SPACE;
  uint8_t *p = write_header(out.data, o);
  for (size_t k = 0; k < o.text_count; k++) p = write_text(p, o.text[k]);
  const size_t room = static_cast<size_t>(out.data + out.len - p) - 2 * kChunkOverhead;
  const size_t len = compress(p + 8, room);
  if (len == 0) return ENGINE_NO_SPACE;
  p = close_chunk(p, type_of("IDAT"), len);
  p = close_chunk(p, type_of("IEND"), 0);
  *written = static_cast<size_t>(p - out.data);
  return ENGINE_OK;
}

engine_status encode(engine_u8 out, engine_cu8 pixels, const engine_png_options &o, size_t *written) {
  if (pixels.len != raw_size(o) - o.height) return ENGINE_BAD_LENGTH;
  const Picture picture = {pixels.data, o.height, row_bytes(o), pixel_bytes(o)};
  return write(out, o, written, [&](uint8_t *to, size_t room) { return compress(to, room, picture, o.level); });
}

engine_status encode_filtered(engine_u8 out, engine_cu8 lines, const engine_png_options &o, size_t *written) {
  if (lines.len != raw_size(o)) return ENGINE_BAD_LENGTH;
  constexpr uint8_t kFilters = 5;
  for (size_t at = 0; at < lines.len; at += row_bytes(o) + 1) {
    if (lines.data[at] >= kFilters) return ENGINE_BAD_ARGUMENT;
  }
  return write(out, o, written, [&](uint8_t *to, size_t room) {
    return compress_filtered(to, room, lines.data, o.height, row_bytes(o), pixel_bytes(o), o.level);
  });
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

extern "C" engine_status engine_png_deflate(engine_u8 out, engine_cu8 filtered, const engine_png_options *options,
                                            size_t *written) {
  *written = 0;
  if (engine_png_bound(options) == 0) return ENGINE_BAD_ARGUMENT;
  return latentkit::guarded([&] { return latentkit::png::encode_filtered(out, filtered, *options, written); });
}
