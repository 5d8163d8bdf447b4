// Leaves of the summation tree.
#include "lanes.h"
#include "shared/tree.h"
#include "table.h"

namespace {

constexpr size_t kTreeLanes = LK_TREE_LANES;
constexpr size_t kSums = kTreeLanes / kWide;

inline double pairwise(double *lane) {
  for (size_t width = kTreeLanes / 2; width > 0; width /= 2) {
    for (size_t i = 0; i < width; i++) lane[i] += lane[i + width];
  }
  return lane[0];
}

/* The sum of n terms; at(i) gives a vector of them, one(i) a single one. */
template <class At, class One>
inline double accumulate(size_t n, At at, One one) {
  Doubles sums[kSums] = {};
  size_t i = 0;
  for (; i + kTreeLanes <= n; i += kTreeLanes) {
#pragma GCC unroll 16
    for (size_t j = 0; j < kSums; j++) sums[j] += at(i + j * kWide);
  }
  double lanes[kTreeLanes];
  __builtin_memcpy(lanes, sums, sizeof lanes);
  for (size_t j = 0; i + j < n; j++) lanes[j] += one(i + j);
  return pairwise(lanes);
}

/* term takes a vector of doubles or one double. */
template <class Term>
inline double accumulate(const float *x, size_t n, Term term) {
  return accumulate(
      n, [=](size_t i) { return term(widen(x + i)); }, [=](size_t i) { return term((double)x[i]); });
}

double sum(const float *x, size_t n) { return accumulate(x, n, Itself{}); }

double squares(const float *x, size_t n, double mean) { return accumulate(x, n, SquaredDistance{mean}); }

double scaled_errors(const float *low, const float *high, const float *previous, size_t n, double atol, double rtol) {
  const ScaledError term{atol, rtol};
  return accumulate(
      n, [=](size_t i) { return term(widen(low + i), widen(high + i), widen(previous + i)); },
      [=](size_t i) { return term((double)low[i], (double)high[i], (double)previous[i]); });
}

}  // namespace

extern "C" void LK_JOIN(reduce, LK_ISA)(lk_kernels *table) {
  table->sum = sum;
  table->squares = squares;
  table->scaled_errors = scaled_errors;
}
