/*
 * Sums over a tree whose shape depends on the length alone: leaves of LK_LEAF elements, whose element i goes to lane
 * i mod 32; the lanes are added pairwise (i and i + 16, then i and i + 8, …), then neighbouring leaves, then neighbours
 * of those, an odd one carried. So any aligned group of 2^k leaves may be added on its own.
 */
#pragma once

#include <math.h>
#include <stdint.h>

#include "shared/inline.h"

#define LK_LEAF 4096
#define LK_TREE_LANES 32

namespace {

/* Terms of the sums, in double; for vectors too. */
struct Itself {
  template <class V>
  LK_INLINE V operator()(V v) const {
    return v;
  }
};

struct SquaredDistance {
  double mean;
  template <class V>
  LK_INLINE V operator()(V v) const {
    V d = v - mean;
    return d * d;
  }
};

LK_INLINE double mean_of(double sum, uint64_t n) { return sum / (double)n; }

/* Unbiased, rounded once; NaN for fewer than two elements. */
LK_INLINE float deviation_of(double squares, uint64_t n) {
  return n < 2 ? NAN : (float)sqrt(squares / (double)(n - 1));
}

}  // namespace
