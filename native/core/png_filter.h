// The rows of a picture as PNG stores them, in the units of the deflate that follows.
#ifndef LATENTKIT_PNG_FILTER_H
#define LATENTKIT_PNG_FILTER_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include "deflate.h"
#include "scratch.h"

namespace latentkit::png {

struct Filtered {
  Scratch raw; /* height lines of a filter byte and row_bytes bytes */
  std::vector<deflate::Unit> units; /* of raw, surveyed */
  uint32_t adler; /* of raw */
};

/* Each row with the filter of least sum of distances. step: bytes of a pixel. Throws std::bad_alloc. */
Filtered filter(const uint8_t *pixels, size_t height, size_t row_bytes, size_t step);

}  // namespace latentkit::png

#endif
