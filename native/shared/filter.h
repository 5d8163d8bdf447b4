/* The filters of PNG rows, byte by byte. */
#pragma once

#include <stdint.h>

#include "shared/inline.h"

namespace {

enum Filter { kNone, kSub, kUp, kAverage, kPaeth, kFilters };

/* The nearest of the three to left + above - corner, the first of equals. */
LK_INLINE uint8_t byte_paeth(uint8_t left, uint8_t above, uint8_t corner) {
  int pa = above - corner, pb = left - corner, pc = pa + pb;
  pa = pa < 0 ? -pa : pa, pb = pb < 0 ? -pb : pb, pc = pc < 0 ? -pc : pc;
  return pa <= pb && pa <= pc ? left : pb <= pc ? above : corner;
}

template <Filter F>
LK_INLINE uint8_t predict_byte(uint8_t left, uint8_t above, uint8_t corner) {
  if constexpr (F == kSub) return left;
  if constexpr (F == kUp) return above;
  if constexpr (F == kAverage) return (uint8_t)((left + above) >> 1);
  if constexpr (F == kPaeth) return byte_paeth(left, above, corner);
  return 0;
}

/* A byte's distance from 0, modulo 256; a row takes the filter of the least sum, the lowest of equals. */
LK_INLINE uint32_t byte_cost(uint8_t v) { return v < 128 ? v : 256u - v; }

}  // namespace
