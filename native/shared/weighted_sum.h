/* Weighted sums, of single floats and of vectors of them. The including file defines `fused` before. */
#pragma once

#include <stddef.h>

#include "shared/elementwise.h"

namespace {

/* The sum of coefficients[k] * value(k) over `count` floats, or vectors of them: the small halves of the coefficients
 * first, then the large ones, so that the roundings are those of a sum with the doubles themselves. */
template <class Value>
LK_INLINE auto weighted_sum(unsigned count, const lk_coefficient *coefficients, Value value) {
  auto sum = value(0) * coefficients[0].low;
  for (unsigned k = 1; k < count; k++) sum = fused(value(k), coefficients[k].low, sum);
  for (unsigned k = 0; k < count; k++) sum = fused(value(k), coefficients[k].high, sum);
  return sum;
}

template <unsigned N>
struct Count {
  static constexpr unsigned value = N;
};

/* body(Count<count>), count from 1 to 8: loops over the terms of a sum must be unrolled. */
template <class Body>
LK_INLINE void with_count(size_t count, Body body) {
  switch (count) {
    case 1: return body(Count<1>{});
    case 2: return body(Count<2>{});
    case 3: return body(Count<3>{});
    case 4: return body(Count<4>{});
    case 5: return body(Count<5>{});
    case 6: return body(Count<6>{});
    case 7: return body(Count<7>{});
    case 8: return body(Count<8>{});
    default: return;
  }
}

}  // namespace
