// The rows of a picture as PNG stores them, in the units of the deflate that follows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "deflate/deflate.h"
#include "runtime/scratch.h"

namespace latentkit::png {

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
  Scratch memory; /* of the lines; NULL where the caller owns them */
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
/* Gives bands of few colours the filter kUp where their runs are smaller so. */
void prefer_up(Filtered &filtered, const Rows &rows);
/* Leaves bands of few colours unfiltered where their strings come again more often so; else as prefer_up(). */
void prefer_plain(Filtered &filtered, const Rows &rows);
/* Groups of bands with the filtering, of six, whose sample is the smallest after a quick search. */
Filtered filter_by_sample(const Rows &rows);

}  // namespace latentkit::png
