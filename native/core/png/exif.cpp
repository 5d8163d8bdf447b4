// The orientation that EXIF gives a picture, and pixels turned by it.
#include <algorithm>
#include <cstring>

#include "png.h"

namespace latentkit::png {
namespace {

/* Numbers of a TIFF block; what lies outside is 0. */
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
  // some writers leave the name in front that a JPEG needs
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
