/*
 * Sums over a tree whose shape depends only on the length: leaves of LK_LEAF elements, whose element i goes to lane
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

/* ((low - high) / max(atol, rtol * max(|low|, |previous|)))^2; the comparisons keep a NaN a NaN. */
struct ScaledError {
  double atol, rtol;
  template <class V>
  LK_INLINE V operator()(V low, V high, V previous) const {
    const V now = magnitude(low), before = magnitude(previous);
    const V scale = (now > before ? now : before) * rtol;
    const V ratio = (low - high) / (scale < atol ? V{} + atol : scale);
    return ratio * ratio;
  }

 private:
  template <class V>
  static LK_INLINE V magnitude(V v) {
    return v < 0.0 ? -v : v;
  }
};

LK_INLINE double mean_of(double sum, uint64_t n) { return sum / (double)n; }

/* Unbiased, rounded once; NaN for fewer than two elements. */
LK_INLINE float deviation_of(double squares, uint64_t n) {
  return n < 2 ? NAN : (float)sqrt(squares / (double)(n - 1));
}

LK_INLINE double root_mean_of(double squares, uint64_t n) { return n == 0 ? NAN : sqrt(squares / (double)n); }

}  // namespace
