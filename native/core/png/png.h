// Shared parts of the PNG codec: chunks, and the properties of a file that a scan of them collects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "engine.h"
#include "libdeflate.h"

namespace latentkit::png {

constexpr uint8_t kSignature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
constexpr size_t kMaxChunk = 0x7FFFFFFF;

constexpr uint32_t type_of(const char (&name)[5]) {
  return uint32_t{static_cast<uint8_t>(name[0])} << 24 | uint32_t{static_cast<uint8_t>(name[1])} << 16 |
         uint32_t{static_cast<uint8_t>(name[2])} << 8 | uint32_t{static_cast<uint8_t>(name[3])};
}

inline uint32_t read32(const uint8_t *p) {
  return uint32_t{p[0]} << 24 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 8 | uint32_t{p[3]};
}
inline void write32(uint8_t *p, uint32_t value) {
  for (int k = 0; k < 4; k++) p[k] = static_cast<uint8_t>(value >> (24 - 8 * k));
}

/* Memory that is written before it is read: never cleared first. Throws std::bad_alloc. */
inline std::unique_ptr<uint8_t[]> fresh(size_t bytes) { return std::unique_ptr<uint8_t[]>(new uint8_t[bytes]); }

constexpr size_t kMaxDeflateRatio = 1032;  // 258 bytes from two bits

struct FreeInflater {
  void operator()(libdeflate_decompressor *d) const { libdeflate_free_decompressor(d); }
};
using Inflater = std::unique_ptr<libdeflate_decompressor, FreeInflater>;

struct Chunk {
  uint32_t type;
  const uint8_t *data;
  size_t len;
};

/* The chunks of a file in order, each with its length, name and check sum verified before it is returned. */
class Chunks {
 public:
  explicit Chunks(engine_cu8 file);
  /* False after IEND and at the first fault; reason() is NULL after IEND. */
  bool next(Chunk *chunk);
  const char *reason() const { return reason_; }

 private:
  bool fail(const char *reason);

  engine_cu8 file_;
  size_t at_ = 0;
  bool ended_ = false;
  const char *reason_ = nullptr;
};

enum Colour : uint8_t { kGrey = 0, kRgb = 2, kPalette = 3, kGreyAlpha = 4, kRgba = 6 };

/* One sub-image of Adam7; a plain picture is a single pass with step 1. */
struct Pass {
  uint32_t x0, y0, dx, dy;
  size_t width, height; /* of the pass */
  size_t row_bytes;     /* without the filter byte */
};

struct Scan {
  uint32_t width, height;
  int depth;
  uint8_t colour;
  bool interlaced;
  const uint8_t *palette;
  size_t palette_size;
  const uint8_t *transparency; /* of tRNS; NULL: none */
  size_t transparency_len;
  size_t first_data; /* offset of the first chunk with data: IDAT, or fdAT of a frame */
  size_t data_chunks, data_len;
  size_t data_skip; /* bytes in front of the data in each chunk: 4 in fdAT */
  size_t raw_len;   /* of the inflated data */
  size_t text_bytes;
  uint32_t announced_frames; /* of acTL; 0: no animation */
  Chunk exif;                /* of eXIf; len 0: none */

  int samples() const; /* a pixel of the file */
  size_t pixel_bits() const { return static_cast<size_t>(samples() * depth); }
  int channels() const; /* a pixel of the result */
  int result_depth() const { return depth == 16 ? 16 : 8; }
  size_t result_pixel_bytes() const { return static_cast<size_t>(channels() * result_depth() / 8); }
  /* Fills passes, returns their number, empty ones left out. */
  int passes(Pass out[7]) const;
};

engine_status scan(engine_cu8 file, uint64_t max_pixels, Scan *scan, const char **reason);
/* Fills raw_len. Refuses sizes that overflow, or that the data cannot fill. */
engine_status measure(Scan *scan, const char **reason);

/* Decodes the data of the scan to width * height pixels. */
engine_status decode(engine_cu8 file, const Scan &scan, uint8_t *out, const char **reason);
/* The pixel whose samples are all zero, result_pixel_bytes() long. */
void decode_zero(const Scan &scan, uint8_t *out);

/* The EXIF orientation, 1 to 8; 1 where the chunk is damaged or holds none. */
int orientation(const Chunk &exif);
constexpr bool swaps_sides(int orientation) { return orientation > 4; }
/* Turns pixels [height, width] as the orientation says; out holds as many and does not overlap. */
void turn(int orientation, const uint8_t *pixels, size_t width, size_t height, size_t pixel_bytes, uint8_t *out);

/* Room that the text of a chunk can take at most; 0 where it is no text. */
size_t text_bound(const Chunk &chunk);
constexpr size_t kMaxText = size_t{16} << 20;
constexpr size_t kMaxTexts = size_t{64} << 20;

}  // namespace latentkit::png
