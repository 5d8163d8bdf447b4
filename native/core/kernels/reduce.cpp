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

/* term takes a vector of doubles or one double. */
template <class Term>
inline double accumulate(const float *x, size_t n, Term term) {
  Doubles sums[kSums] = {};
  size_t i = 0;
  for (; i + kTreeLanes <= n; i += kTreeLanes) {
#pragma GCC unroll 16
    for (size_t j = 0; j < kSums; j++) sums[j] += term(widen(x + i + j * kWide));
  }
  double lanes[kTreeLanes];
  __builtin_memcpy(lanes, sums, sizeof lanes);
  for (size_t j = 0; i + j < n; j++) lanes[j] += term((double)x[i + j]);
  return pairwise(lanes);
}

double sum(const float *x, size_t n) { return accumulate(x, n, Itself{}); }

double squares(const float *x, size_t n, double mean) { return accumulate(x, n, SquaredDistance{mean}); }

}  // namespace

extern "C" void LK_JOIN(reduce, LK_ISA)(lk_kernels *table) {
  table->sum = sum;
  table->squares = squares;
}
