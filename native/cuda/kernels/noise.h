// The Philox stream: one thread makes the four words of a counter, whose normals lie one launch of PyTorch's apart.
#ifndef LATENTKIT_CUDA_NOISE_H
#define LATENTKIT_CUDA_NOISE_H

#include "kernels/grid.h"
#include "kernels/kernels.h"
#include "kernels/lane.h"
#include "shared/elementwise.h"
#include "shared/philox.h"

namespace {

struct PhiloxWords {
  uint32_t w[4];
};

LK_INLINE PhiloxWords philox(uint64_t seed, uint64_t row, uint64_t thread) {
  PhiloxKey key = philox_key(seed);
  PhiloxWords c = {{(uint32_t)row, (uint32_t)(row >> 32), (uint32_t)thread, (uint32_t)(thread >> 32)}};
  for (int round = 0; round < kPhiloxRounds; round++) {
    philox_round(&c.w[0], &c.w[1], &c.w[2], &c.w[3], key);
    philox_bump(&key);
  }
  return c;
}

}  // namespace

LK_KERNEL lk_philox_normals(float *out, uint64_t n, uint64_t seed, uint64_t counter, uint64_t threads, float k) {
  const Scale scaled = {k};
  uint64_t rows = (n - 1) / (4 * threads) + 1;
  for_each(rows * threads, [=](uint64_t i) {
    Divided at = divided(i, threads);
    uint64_t first = at.quotient * 4 * threads + at.rest;
    if (first >= n) return;
    PhiloxWords c = philox(seed, counter + at.quotient, at.rest);
    float sine, cosine;
    philox_pair(c.w[0], c.w[1], &sine, &cosine);
    out[first] = scaled(sine);
    if (first + threads >= n) return;
    out[first + threads] = scaled(cosine);
    if (first + 2 * threads >= n) return;
    philox_pair(c.w[2], c.w[3], &sine, &cosine);
    out[first + 2 * threads] = scaled(sine);
    if (first + 3 * threads < n) out[first + 3 * threads] = scaled(cosine);
  });
}

LK_KERNEL lk_philox_words(uint32_t *out, uint64_t n, uint64_t seed, uint64_t counter, uint64_t threads) {
  for_each(n, [=](uint64_t i) {
    Divided at = divided(i, threads);
    PhiloxWords c = philox(seed, counter + at.quotient / 4, at.rest);
    for (int k = 0; k < 4; k++) out[k * n + i] = c.w[k];
  });
}

#endif
