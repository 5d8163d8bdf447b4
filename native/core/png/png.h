// Shared by the parts of the PNG codec: chunks, what a scan of them finds, and rows with their filters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "deflate/deflate.h"
#include "libdeflate.h"
#include "runtime/runtime.h"

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

/* Sets the reason and returns the status. */
inline engine_status refuse(const char **reason, const char *why, engine_status status = ENGINE_BAD_FILE) {
  *reason = why;
  return status;
}

struct Chunk {
  uint32_t type;
  const uint8_t *data;
  size_t len;
};

/* The chunks of a file in order, each with its length, name and checksum verified before it is returned. */
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

/* The EXIF orientation, 1 to 8; 1 if the chunk is damaged or has none. */
int orientation(const Chunk &exif);
constexpr bool swaps_sides(int orientation) { return orientation > 4; }
/* Turns pixels [height, width] as the orientation says; out has the same size and does not overlap. */
void turn(int orientation, const uint8_t *pixels, size_t width, size_t height, size_t pixel_bytes, uint8_t *out);

/* The most room that the text of a chunk can take; 0 if it is not text. */
size_t text_bound(const Chunk &chunk);
constexpr size_t kMaxText = size_t{16} << 20;
constexpr size_t kMaxTexts = size_t{64} << 20;

/* Samples in rows from the top. */
struct Picture {
  const uint8_t *pixels;
  size_t height, row_bytes, step; /* step: bytes of a pixel */

  size_t line() const { return row_bytes + 1; }
};

/* The lines [first, last) of a picture lie side by side in one unit. */
struct Band {
  size_t first, last;
};

/* Lines of a filter byte and row_bytes bytes, band by band. */
struct Filtered {
  Scratch memory; /* of the lines; NULL if the caller owns them */
  std::vector<Band> bands;
  std::vector<deflate::Unit> units;
  std::vector<uint32_t> sums; /* Adler-32 of each unit */

  uint32_t adler() const;
};

/* Writes rows of a picture as lines with one filter or another. */
class Rows {
 public:
  /* Throws std::bad_alloc. */
  explicit Rows(const Picture &picture);
  const Picture &picture() const { return picture_; }
  /* The filter of the least sum of distances from 0. */
  void write_cheapest(uint8_t *line, size_t y) const;
  void write_by(int filter, uint8_t *line, size_t y) const;
  void write_cheapest(uint8_t *lines, const Band &band) const;
  void write_by(int filter, uint8_t *lines, const Band &band) const;

 private:
  const uint8_t *row(size_t y) const { return picture_.pixels + y * picture_.row_bytes; }
  const uint8_t *above(size_t y) const { return y == 0 ? zeros_.get() : row(y - 1); }

  Picture picture_;
  std::unique_ptr<uint8_t[]> zeros_;
};

constexpr size_t kBand = 65535; /* bytes with filter bytes: what one stored block holds */

/* Each row with the filter of the least sum of distances from 0. is_surveyed: the units are surveyed, else they
 * are only counted. Throws std::bad_alloc. */
Filtered filter_rows(const Rows &rows, bool is_surveyed);
/* filter_rows of lines that are filtered so already. */
Filtered filtered_before(const uint8_t *lines, size_t height, size_t row_bytes, bool is_surveyed);
/* All rows with one filter, 0 to 4; the units are counted. */
Filtered filter_rows_by(const Rows &rows, int filter);
constexpr int kPlain = 0, kUp = 2; /* filters */
/* Gives bands of few colours the filter kUp if that makes their runs smaller. */
void prefer_up(Filtered &filtered, const Rows &rows);
/* Leaves bands of few colours unfiltered if their strings recur more often that way; else as prefer_up(). */
void prefer_plain(Filtered &filtered, const Rows &rows);
/* Groups of bands with the filtering, of six, whose sample is the smallest after a quick search. */
Filtered filter_by_sample(const Rows &rows);

}  // namespace latentkit::png
