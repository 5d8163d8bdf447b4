// Sums over a tree whose shape depends on the length alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "runtime/dispatch.h"
#include "runtime/parallel.h"
#include "shared/tree.h"

namespace latentkit {

constexpr size_t kLeaf = LK_LEAF;

/* Leaves one thread takes at once: LK_LEAF elements each. */
constexpr size_t kLeavesPerChunk = kGrain / kLeaf;

/* Adds neighbours, then neighbours of those, until one is left. */
inline double add_pairwise(std::vector<double> &values) {
  for (size_t count = values.size(); count > 1;) {
    size_t half = count / 2;
    for (size_t i = 0; i < half; i++) values[i] = values[2 * i] + values[2 * i + 1];
    if (count % 2 != 0) values[half] = values[count - 1];
    count = half + count % 2;
  }
  return values.empty() ? 0.0 : values[0];
}

/* leaf(begin, count) gives the sum of elements [begin, begin + count) of n, called for every leaf, from any thread. */
template <class Leaf>
double tree_sum(size_t n, Leaf &&leaf) {
  std::vector<double> sums((n + kLeaf - 1) / kLeaf);
  for_ranges(n, kLeavesPerChunk * kLeaf, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; i += kLeaf) sums[i / kLeaf] = leaf(i, std::min(kLeaf, end - i));
  });
  return add_pairwise(sums);
}

/* Unbiased standard deviation of n elements, NaN for fewer than two. read(begin, count, buffer) points to the elements
 * of one leaf; it may compute them into the buffer. */
template <class Read>
float deviation(size_t n, Read &&read) {
  double sum = tree_sum(n, [&](size_t begin, size_t count) {
    float buffer[kLeaf];
    return kernels().sum(read(begin, count, buffer), count);
  });
  const double mean = mean_of(sum, n);
  double squares = tree_sum(n, [&](size_t begin, size_t count) {
    float buffer[kLeaf];
    return kernels().squares(read(begin, count, buffer), count, mean);
  });
  return deviation_of(squares, n);
}

}  // namespace latentkit
