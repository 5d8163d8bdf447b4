// The sums of shared/tree.h: a warp to a leaf, a block to an aligned group of leaves, the last block to end adds the
// groups.
#pragma once

#include "kernels/kernels.h"
#include "kernels/thread.h"
#include "shared/elementwise.h"
#include "shared/tree.h"

namespace {

constexpr unsigned kLeavesOfGroup = LK_BLOCK / LK_TREE_LANES;

struct Pair {
  float x, noise;
};

/* Calls body with a function that loads element i and one that turns it into the value, so that the choice is made
 * once. */
template <class Body>
LK_INLINE auto with_reader(const lk_values &values, Body body) {
  const float *x = values.x, *noise = values.noise;
  if (noise == nullptr) return body([=](uint64_t i) { return x[i]; }, [](float value) { return value; });
  const auto load = [=](uint64_t i) { return Pair{x[i], noise[i]}; };
  if (values.average) return body(load, [](Pair v) { return Average{}(v.x, v.noise); });
  const Axpy op = {values.k};
  return body(load, [=](Pair v) { return op(v.x, v.noise); });
}

/* The sum of the leaf from `begin`, in lane 0; each thread of the warp is a lane. term(load(i)) is what is added; a
 * thread has two times kBatch of what load gives. */
template <unsigned kBatch, class Load, class Term>
LK_INLINE double leaf_sum(Load load, Term term, uint64_t begin, uint64_t n) {
  constexpr unsigned kStride = kBatch * kWarp;
  const uint64_t end = n - begin < LK_LEAF ? n : begin + LK_LEAF;
  uint64_t i = begin + threadIdx.x % kWarp;
  double sum = 0;
  // the next batch is on its way while one is added: a tensor of latents has too few leaves for other warps to fill the
  // wait for the memory
  if (end - begin == LK_LEAF) {
    decltype(load(i)) next[kBatch];
    LK_UNROLL for (unsigned k = 0; k < kBatch; k++) next[k] = load(i + k * kWarp);
    LK_ROLLED for (unsigned batch = 1; batch <= LK_LEAF / kStride; batch++) {
      decltype(load(i)) now[kBatch];
      LK_UNROLL for (unsigned k = 0; k < kBatch; k++) now[k] = next[k];
      i += kStride;
      if (batch < LK_LEAF / kStride) {
        LK_UNROLL for (unsigned k = 0; k < kBatch; k++) next[k] = load(i + k * kWarp);
      }
      LK_UNROLL for (unsigned k = 0; k < kBatch; k++) sum += term(now[k]);
    }
  }
  for (; i < end; i += kWarp) sum += term(load(i));
  for (unsigned width = kWarp / 2; width > 0; width /= 2) sum += from_lane_above(sum, width);
  return sum;
}

/* Adds values[0 … count) of shared memory pairwise, count at most LK_BLOCK; the result is values[0]. */
LK_INLINE void add_pairwise(double *values, unsigned count) {
  for (unsigned step = 1; step < count; step *= 2) {
    __syncthreads();
    unsigned i = threadIdx.x;
    if (i % (2 * step) == 0 && i + step < count) values[i] += values[i + step];
  }
  __syncthreads();
}

/* The sum of all leaves, passed to `finish` by one thread of the launch; leaf(begin) is the sum of one, in lane 0. */
template <class Leaf, class Finish>
LK_INLINE void tree_sum(uint64_t n, Leaf leaf_from, double *partial, uint32_t *tickets, Finish finish) {
  LK_SHARED double sums[LK_BLOCK];
  LK_SHARED bool is_last;
  const uint64_t leaves = (n + LK_LEAF - 1) / LK_LEAF, groups = (leaves + kLeavesOfGroup - 1) / kLeavesOfGroup;
  for (uint64_t group = blockIdx.x; group < groups; group += gridDim.x) {
    const uint64_t first = group * kLeavesOfGroup, leaf = first + threadIdx.x / kWarp;
    const unsigned count = leaves - first < kLeavesOfGroup ? (unsigned)(leaves - first) : kLeavesOfGroup;
    // whole warps go past the last leaf together
    if (leaf < leaves) {
      double sum = leaf_from(leaf * LK_LEAF);
      if (threadIdx.x % kWarp == 0) sums[threadIdx.x / kWarp] = sum;
    }
    add_pairwise(sums, count);
    if (threadIdx.x == 0) partial[group] = sums[0];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    // the groups of this block are written before its ticket is taken
    __threadfence();
    is_last = atomicAdd(tickets, 1u) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!is_last) return;
  volatile double *level = partial;
  uint64_t count = groups;
  do {
    const uint64_t tiles = (count + LK_BLOCK - 1) / LK_BLOCK;
    for (uint64_t tile = 0; tile < tiles; tile++) {
      const uint64_t first = tile * LK_BLOCK;
      const unsigned here = count - first < LK_BLOCK ? (unsigned)(count - first) : LK_BLOCK;
      if (threadIdx.x < here) sums[threadIdx.x] = level[first + threadIdx.x];
      add_pairwise(sums, here);
      // a tile's slot lies at or before its first value, which is read already
      if (threadIdx.x == 0) level[tile] = sums[0];
      __syncthreads();
    }
    count = tiles;
  } while (count > 1);
  if (threadIdx.x == 0) {
    finish(sums[0]);
    *tickets = 0;
  }
}

/* tree_sum of term(value). */
template <class Term, class Finish>
LK_INLINE void sum_values(const lk_values &values, uint64_t n, Term term, double *partial, uint32_t *tickets,
                          Finish finish) {
  const auto leaf = [=](uint64_t begin) {
    return with_reader(values, [=](auto load, auto value) {
      return leaf_sum<32>(
          load, [=](auto loaded) { return term((double)value(loaded)); }, begin, n);
    });
  };
  tree_sum(n, leaf, partial, tickets, finish);
}

struct Step {
  float low, high, previous;
};

}  // namespace

LK_KERNEL lk_sums(lk_values values, uint64_t n, double *partial, uint32_t *tickets, lk_spread *spread) {
  sum_values(values, n, Itself{}, partial, tickets, [=](double sum) { spread->mean = mean_of(sum, n); });
}

LK_KERNEL lk_squares(lk_values values, uint64_t n, double *partial, uint32_t *tickets, lk_spread *spread) {
  const SquaredDistance term = {spread->mean};
  sum_values(values, n, term, partial, tickets, [=](double squares) { spread->deviation = deviation_of(squares, n); });
}

LK_KERNEL lk_scaled_errors(lk_errors errors, uint64_t n, double *partial, uint32_t *tickets, double *norm) {
  const ScaledError error = {errors.atol, errors.rtol};
  const float *low = errors.low, *high = errors.high, *previous = errors.previous;
  const auto load = [=](uint64_t i) { return Step{low[i], high[i], previous[i]}; };
  const auto term = [=](Step s) { return error((double)s.low, (double)s.high, (double)s.previous); };
  const auto leaf = [=](uint64_t begin) { return leaf_sum<8>(load, term, begin, n); };
  tree_sum(n, leaf, partial, tickets, [=](double squares) { *norm = root_mean_of(squares, n); });
}
