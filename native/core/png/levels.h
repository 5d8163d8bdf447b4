// The levels of a PNG file: their filters and their search, from the fastest to the smallest.
#pragma once

#include <cstddef>
#include <cstdint>

#include "filter.h"

namespace latentkit::png {

/* The zlib stream of a picture's lines, level 0 to 9; 0 where it has no room. Throws std::bad_alloc. */
size_t compress(uint8_t *out, size_t room, const Picture &picture, int level);
/* The stream of compress() from lines filtered by the least sums already. step: bytes of a pixel. */
size_t compress_filtered(uint8_t *out, size_t room, const uint8_t *lines, size_t height, size_t row_bytes, size_t step,
                         int level);

}  // namespace latentkit::png
