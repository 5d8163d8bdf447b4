// Writes a PNG: for each level its filters and its search, then the chunks. The same bytes on every machine.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "png/png.h"
#include "runtime/runtime.h"

// From level 6 on the stream of the level below is kept if it is not larger, so that levels stay in order by
// construction.
// decisions: PNG files are written by our own deflate
namespace latentkit::png {
namespace {

constexpr int kStored = 0, kFastest = 1, kDefault = 4;
constexpr int kFirstSearch = 3; /* lower levels take only runs */
constexpr deflate::Effort kHasty = {1, 12, 0, 4};
constexpr int kFirstSampled = 5; /* levels below filter by sums */
/* From the level after that on. With all before them they take less than eight times what the default takes. */
constexpr deflate::Effort kSearches[] = {{12, 64, 16, 64}, {16, 64, 16, 64}, {24, 64, 16, 64}, {32, 64, 16, 64}};
constexpr size_t kSmall = kBand; /* lines of fewer bytes are compressed at every level up to the default */
constexpr size_t kOverhead = 6;  /* of a zlib stream: header and Adler-32 */

struct FreeDeflater {
  void operator()(libdeflate_compressor *c) const { libdeflate_free_compressor(c); }
};

/* Lines and the stream that holds them. */
struct Packed {
  std::shared_ptr<uint8_t[]> lines;
  uint32_t adler;
  deflate::Stream stream;
};

/* Counted units without matches, so that each search starts from the same ones. */
std::vector<deflate::Unit> copies_of(const std::vector<deflate::Unit> &units) {
  std::vector<deflate::Unit> copies(units.size());
  for (size_t k = 0; k < units.size(); k++) {
    const deflate::Unit &from = units[k];
    deflate::Unit &to = copies[k];
    to.raw = from.raw;
    to.len = from.len;
    to.line = from.line;
    to.repeats = from.repeats;
    to.is_sure = from.is_sure;
    to.counts = from.counts;
    std::copy(std::begin(from.plain), std::end(from.plain), to.plain);
    to.plain_cost = from.plain_cost;
  }
  return copies;
}

Packed pack(Filtered filtered) {
  const uint32_t adler = filtered.adler();
  return {std::move(filtered.memory), adler, deflate::Stream(std::move(filtered.units))};
}

void keep_smaller(Packed &best, Packed other) {
  if (other.stream.size() < best.stream.size()) best = std::move(other);
}

/* Level 1 to 4. */
Packed pack_at(const Rows &rows, int level) {
  Filtered filtered = level == kFastest ? filter_rows_by(rows, kUp) : filter_rows(rows, level >= kFirstSearch);
  if (level < kFirstSearch) {
    if (level > kFastest) prefer_up(filtered, rows);
    deflate::find_runs(filtered.units);
  } else {
    prefer_plain(filtered, rows);
    if (level == kDefault) deflate::find_matches(filtered.units, deflate::kThorough, deflate::kBrisk);
    else deflate::find_matches(filtered.units, deflate::kQuick, kHasty);
    deflate::find_runs(filtered.units);
  }
  return pack(std::move(filtered));
}

/* Every level above the default continues from the result of the one below, and keeps what is smaller. */
Packed pack_best(const Rows &rows, int level) {
  const bool is_small = rows.picture().line() * rows.picture().height <= kSmall;
  Packed best = pack_at(rows, is_small ? kFastest : std::min(level, kDefault));
  for (int lower = kFastest + 1; is_small && lower <= std::min(level, kDefault); lower++)
    keep_smaller(best, pack_at(rows, lower));
  if (level <= kDefault) return best;
  Filtered filtered = filter_by_sample(rows);
  const std::shared_ptr<uint8_t[]> lines = std::move(filtered.memory);
  const uint32_t adler = filtered.adler();
  for (int above = kFirstSampled; above <= level; above++) {
    std::vector<deflate::Unit> units = copies_of(filtered.units);
    if (above == kFirstSampled) {
      deflate::find_matches(units, deflate::kThorough, deflate::kBrisk);
    } else {
      const deflate::Effort &deep = kSearches[above - kFirstSampled - 1];
      deflate::find_matches(units, deep, deep);
    }
    keep_smaller(best, {lines, adler, deflate::Stream(std::move(units))});
  }
  return best;
}

size_t write_stream(uint8_t *out, size_t room, Packed packed, int level) {
  const size_t len = packed.stream.size() + kOverhead;
  if (len > room) return 0;
  // a window of 32 KiB; the second byte holds the level in four steps
  out[0] = 0x78;
  out[1] = level < 2 ? 0x01 : level < 6 ? 0x5E : level == 6 ? 0x9C : 0xDA;
  packed.stream.write(out + 2);
  write32(out + len - 4, packed.adler);
  return len;
}

size_t store(uint8_t *out, size_t room, const Filtered &filtered) {
  const std::unique_ptr<libdeflate_compressor, FreeDeflater> deflater(libdeflate_alloc_compressor(kStored));
  if (deflater == nullptr) throw std::bad_alloc();
  const uint8_t *const lines = filtered.units.front().raw;
  const deflate::Unit &last = filtered.units.back();
  return libdeflate_zlib_compress(deflater.get(), lines, static_cast<size_t>(last.raw + last.len - lines), out, room);
}

/* The pixels of lines. */
Scratch unfiltered(const uint8_t *lines, size_t height, size_t row_bytes, size_t step) {
  Scratch pixels = scratch(row_bytes * height);
  const std::unique_ptr<uint8_t[]> zeros(new uint8_t[row_bytes]());
  const uint8_t *above = zeros.get();
  for (size_t y = 0; y < height; y++) {
    const uint8_t *const line = lines + y * (row_bytes + 1);
    uint8_t *const row = pixels.get() + y * row_bytes;
    kernels().unfilter(line[0], row, line + 1, above, row_bytes, step);
    above = row;
  }
  return pixels;
}

/* The zlib stream of a picture's lines, level 0 to 9; 0 if it has no room. Throws std::bad_alloc. */
size_t compress(uint8_t *out, size_t room, const Picture &picture, int level) {
  const Rows rows(picture);
  if (level == kStored) return store(out, room, filter_rows(rows, false));
  return write_stream(out, room, pack_best(rows, level), level);
}

/* The stream of compress() from lines filtered by the least sums already. step: bytes of a pixel. */
size_t compress_filtered(uint8_t *out, size_t room, const uint8_t *lines, size_t height, size_t row_bytes, size_t step,
                         int level) {
  const bool is_small = (row_bytes + 1) * height <= kSmall;
  if (level == kStored) return store(out, room, filtered_before(lines, height, row_bytes, false));
  if (level >= kFirstSearch && level <= kDefault && !is_small) {
    Filtered filtered = filtered_before(lines, height, row_bytes, true);
    const auto repeats = [](const deflate::Unit &unit) { return unit.repeats; };
    // if nothing recurs, these levels keep the filters
    if (std::none_of(filtered.units.begin(), filtered.units.end(), repeats)) {
      deflate::find_runs(filtered.units);
      return write_stream(out, room, pack(std::move(filtered)), level);
    }
  }
  const Scratch pixels = unfiltered(lines, height, row_bytes, step);
  return compress(out, room, {pixels.get(), height, row_bytes, step}, level);
}

/* ---- chunks ---- */
constexpr size_t kChunkOverhead = 12;
constexpr size_t kMaxKey = 79;
constexpr uint8_t kColours[5] = {0, kGrey, kGreyAlpha, kRgb, kRgba};

/* Writes length, name and checksum around `len` bytes already at p + 8; returns the end. */
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

/* Filter bytes and samples; 0 if the options are bad or one data chunk cannot hold them. */
size_t raw_size(const engine_png_options &o) {
  if (o.width == 0 || o.height == 0 || o.width > kMaxChunk || o.height > kMaxChunk) return 0;
  if (o.channels < 1 || o.channels > 4 || o.level < 0 || o.level > 9) return 0;
  if (o.bit_depth != 8 && o.bit_depth != 16) return 0;
  size_t size = 0;
  if (__builtin_mul_overflow(size_t{o.width} * pixel_bytes(o) + 1, size_t{o.height}, &size)) return 0;
  return size <= kMaxChunk && libdeflate_zlib_compress_bound(nullptr, size) <= kMaxChunk ? size : 0;
}

/* Signature, header, text and end; 0 if a text is bad. */
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
engine_status write_file(engine_u8 out, const engine_png_options &o, size_t *written, Compress &&compress) {
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
  return write_file(out, o, written, [&](uint8_t *to, size_t room) { return compress(to, room, picture, o.level); });
}

engine_status encode_filtered(engine_u8 out, engine_cu8 lines, const engine_png_options &o, size_t *written) {
  if (lines.len != raw_size(o)) return ENGINE_BAD_LENGTH;
  constexpr uint8_t kFilters = 5;
  for (size_t at = 0; at < lines.len; at += row_bytes(o) + 1) {
    if (lines.data[at] >= kFilters) return ENGINE_BAD_ARGUMENT;
  }
  return write_file(out, o, written, [&](uint8_t *to, size_t room) {
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
