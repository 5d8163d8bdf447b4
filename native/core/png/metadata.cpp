// Text chunks as UTF-8, and the orientation in EXIF. A malformed chunk is skipped: it never costs the picture.
#include <algorithm>
#include <cstring>
#include <memory>

#include "png/png.h"
#include "runtime/runtime.h"

namespace latentkit::png {
namespace {

struct Piece {
  const uint8_t *data;
  size_t len;
};

/* A chunk's parts; data of the value may be deflated. */
struct Text {
  Piece key, value;
  bool is_latin1, is_deflated;
};

/* Splits off what comes before the next NUL; false if there is none. */
bool take_field(Piece *rest, Piece *field) {
  const void *nul = rest->len == 0 ? nullptr : std::memchr(rest->data, 0, rest->len);
  if (nul == nullptr) return false;
  *field = {rest->data, static_cast<size_t>(static_cast<const uint8_t *>(nul) - rest->data)};
  *rest = {field->data + field->len + 1, rest->len - field->len - 1};
  return true;
}

bool parse(const Chunk &chunk, Text *text) {
  Piece rest{chunk.data, chunk.len}, ignored;
  if (!take_field(&rest, &text->key) || text->key.len == 0) return false;
  text->is_latin1 = chunk.type != type_of("iTXt");
  text->is_deflated = false;
  if (chunk.type == type_of("zTXt")) {
    if (rest.len < 1 || rest.data[0] != 0) return false;
    rest = {rest.data + 1, rest.len - 1};
    text->is_deflated = true;
  } else if (chunk.type == type_of("iTXt")) {
    if (rest.len < 2 || rest.data[0] > 1 || rest.data[1] != 0) return false;
    text->is_deflated = rest.data[0] == 1;
    rest = {rest.data + 2, rest.len - 2};
    if (!take_field(&rest, &ignored) || !take_field(&rest, &ignored)) return false;
  }
  text->value = rest;
  return true;
}

class Writer {
 public:
  explicit Writer(engine_u8 out) : out_(out) {}
  size_t written() const { return at_; }

  /* Up to the first NUL, which ends a field of the result. False if there is no more room. */
  bool put(Piece text, bool is_latin1) {
    for (size_t i = 0; i < text.len && text.data[i] != 0; i++) {
      const uint8_t byte = text.data[i];
      const bool is_wide = is_latin1 && byte >= 0x80;
      if (out_.len - at_ < (is_wide ? 2u : 1u)) return false;
      if (is_wide) out_.data[at_++] = static_cast<uint8_t>(0xC0 | byte >> 6);
      out_.data[at_++] = is_wide ? static_cast<uint8_t>(0x80 | (byte & 0x3F)) : byte;
    }
    if (at_ == out_.len) return false;
    out_.data[at_++] = 0;
    return true;
  }

 private:
  engine_u8 out_;
  size_t at_ = 0;
};

/* Inflates values, no more of them in a file than its text may be long. */
class Unpacker {
 public:
  /* The value unpacked, in memory of the unpacker until the next call. BAD_FILE: damaged; TOO_LARGE: too long. */
  engine_status unpack(Piece *value) {
    const size_t room = std::min({kMaxText, left_, value->len * kMaxDeflateRatio});
    const Inflater inflater(libdeflate_alloc_decompressor());
    if (inflater == nullptr) return ENGINE_NO_MEMORY;
    memory_ = fresh(room);
    size_t len = room;
    const auto result = libdeflate_zlib_decompress(inflater.get(), value->data, value->len, memory_.get(), room, &len);
    if (result == LIBDEFLATE_INSUFFICIENT_SPACE) return ENGINE_TOO_LARGE;
    const bool is_whole = result == LIBDEFLATE_SUCCESS;
    left_ -= is_whole ? len : room;  // damaged data counts too: it was inflated
    *value = {memory_.get(), len};
    return is_whole ? ENGINE_OK : ENGINE_BAD_FILE;
  }

 private:
  std::unique_ptr<uint8_t[]> memory_;
  size_t left_ = kMaxTexts;
};

engine_status write_texts(engine_u8 out, engine_cu8 file, size_t *written, const char **reason) {
  Writer writer(out);
  Unpacker unpacker;
  Chunks chunks(file);
  Chunk chunk{};
  const auto too_long = [reason] {
    *reason = "its text is longer than allowed";
    return ENGINE_TOO_LARGE;
  };
  while (chunks.next(&chunk)) {
    Text text;
    if (text_bound(chunk) == 0 || !parse(chunk, &text)) continue;
    const engine_status status = text.is_deflated ? unpacker.unpack(&text.value) : ENGINE_OK;
    if (status == ENGINE_BAD_FILE) continue;
    if (status == ENGINE_TOO_LARGE || text.value.len > kMaxText) return too_long();
    if (status != ENGINE_OK) return status;
    if (!writer.put(text.key, true) || !writer.put(text.value, text.is_latin1))
      return out.len < kMaxTexts ? ENGINE_NO_SPACE : too_long();
  }
  *written = writer.written();
  *reason = chunks.reason();
  return chunks.reason() == nullptr ? ENGINE_OK : ENGINE_BAD_FILE;
}

}  // namespace

size_t text_bound(const Chunk &chunk) {
  if (chunk.type == type_of("tEXt")) return 2 * chunk.len + 2;
  if (chunk.type != type_of("zTXt") && chunk.type != type_of("iTXt")) return 0;
  return 2 * chunk.len + 2 + 2 * std::min(kMaxText, chunk.len * kMaxDeflateRatio);
}

/* ---- EXIF ---- */
namespace {

/* Numbers of a TIFF block; those outside it are 0. */
class Tiff {
 public:
  Tiff(const uint8_t *data, size_t len) : data_(data), len_(len), big_(len > 0 && data[0] == 'M') {}

  uint32_t u16(size_t at) const {
    if (at > len_ || len_ - at < 2) return 0;
    return big_ ? uint32_t{data_[at]} << 8 | data_[at + 1] : uint32_t{data_[at + 1]} << 8 | data_[at];
  }
  uint32_t u32(size_t at) const {
    const uint32_t first = u16(at), second = u16(at + 2);
    return big_ ? first << 16 | second : second << 16 | first;
  }
  bool is_tiff() const {
    return len_ >= 8 && (std::memcmp(data_, "MM\0*", 4) == 0 || std::memcmp(data_, "II*\0", 4) == 0);
  }
  size_t len() const { return len_; }

 private:
  const uint8_t *data_;
  size_t len_;
  bool big_;
};

constexpr uint32_t kOrientation = 0x0112;
enum TiffType : uint32_t { kShort = 3, kLong = 4 };

template <size_t N>
void turn_pixels(int orientation, const uint8_t *pixels, size_t width, size_t height, uint8_t *out) {
  const bool flips_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool flips_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool swaps = swaps_sides(orientation);
  const size_t columns = swaps ? height : width, rows = swaps ? width : height;
  constexpr size_t kTile = 32;  // both sides of a turn stay in the first cache
  for (size_t top = 0; top < rows; top += kTile)
    for (size_t left = 0; left < columns; left += kTile)
      for (size_t y = top; y < std::min(rows, top + kTile); y++)
        for (size_t x = left; x < std::min(columns, left + kTile); x++) {
          const size_t u = swaps ? y : x, v = swaps ? x : y;
          const size_t from = (flips_y ? height - 1 - v : v) * width + (flips_x ? width - 1 - u : u);
          std::memcpy(out + (y * columns + x) * N, pixels + from * N, N);
        }
}

}  // namespace

int orientation(const Chunk &exif) {
  const uint8_t *data = exif.data;
  size_t len = exif.len;
  // some writers keep the prefix that a JPEG needs
  if (len >= 6 && std::memcmp(data, "Exif\0\0", 6) == 0) data += 6, len -= 6;
  const Tiff tiff(data, len);
  if (!tiff.is_tiff()) return 1;
  const size_t directory = tiff.u32(4);
  const size_t entries = tiff.u16(directory);
  for (size_t k = 0; k < entries; k++) {
    const size_t entry = directory + 2 + 12 * k;
    if (entry + 12 > tiff.len()) break;
    if (tiff.u16(entry) != kOrientation) continue;
    const uint32_t type = tiff.u16(entry + 2);
    if (tiff.u32(entry + 4) != 1 || (type != kShort && type != kLong)) return 1;
    const uint32_t value = type == kShort ? tiff.u16(entry + 8) : tiff.u32(entry + 8);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

void turn(int orientation, const uint8_t *pixels, size_t width, size_t height, size_t pixel_bytes, uint8_t *out) {
  switch (pixel_bytes) {
    case 1: return turn_pixels<1>(orientation, pixels, width, height, out);
    case 2: return turn_pixels<2>(orientation, pixels, width, height, out);
    case 3: return turn_pixels<3>(orientation, pixels, width, height, out);
    case 4: return turn_pixels<4>(orientation, pixels, width, height, out);
    case 6: return turn_pixels<6>(orientation, pixels, width, height, out);
    default: return turn_pixels<8>(orientation, pixels, width, height, out);
  }
}

}  // namespace latentkit::png

extern "C" engine_status engine_png_text(engine_u8 out, engine_cu8 file, size_t *written, const char **reason) {
  const char *why = nullptr;
  *written = 0;
  const engine_status status =
      latentkit::guarded([&] { return latentkit::png::write_texts(out, file, written, &why); });
  if (reason != nullptr) *reason = why;
  return status;
}
