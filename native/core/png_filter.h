// The rows of a picture as PNG stores them, in the units of the deflate that follows.
#ifndef LATENTKIT_PNG_FILTER_H
#define LATENTKIT_PNG_FILTER_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include "deflate.h"

namespace latentkit::png {

struct Filtered {
  const uint8_t *raw; /* height lines of a filter byte and row_bytes bytes; memory of the caller */
  std::vector<deflate::Unit> units; /* of raw, surveyed */
  uint32_t adler; /* of raw */
};

/* Fills raw, each row with the filter of least sum of distances. step: bytes of a pixel. Throws std::bad_alloc. */
Filtered filter(uint8_t *raw, const uint8_t *pixels, size_t height, size_t row_bytes, size_t step);
/* The same for lines that somebody else has filtered. Throws std::bad_alloc. */
Filtered filtered_before(const uint8_t *raw, size_t height, size_t row_bytes);

}  // namespace latentkit::png

#endif
