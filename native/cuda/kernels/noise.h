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

/* body(element, normal) for each of n elements: a thread makes those of a counter, which neighbours have beside them. */
template <class Body>
LK_INLINE void for_normals(uint64_t n, const lk_draw &draw, Body body) {
  const Scale scaled = {draw.k};
  for_each(draw.counters, [=](uint64_t i) {
    Divided at = divided(i, draw.threads);
    uint64_t element = at.quotient * 4 * draw.threads + at.rest;
    if (element >= n) return;
    PhiloxWords c = philox(draw.seed, draw.first + at.quotient, at.rest);
    float sine, cosine;
    philox_pair(c.w[0], c.w[1], &sine, &cosine);
    body(element, scaled(sine));
    if ((element += draw.threads) >= n) return;
    body(element, scaled(cosine));
    if ((element += draw.threads) >= n) return;
    philox_pair(c.w[2], c.w[3], &sine, &cosine);
    body(element, scaled(sine));
    if ((element += draw.threads) < n) body(element, scaled(cosine));
  });
}

}  // namespace

LK_KERNEL lk_philox_normals(float *out, lk_draw draw, uint64_t n) {
  for_normals(n, draw, [=](uint64_t i, float normal) { out[i] = normal; });
}

LK_KERNEL lk_philox_words(uint32_t *out, uint64_t n, uint64_t seed, uint64_t counter, uint64_t threads) {
  for_each(n, [=](uint64_t i) {
    Divided at = divided(i, threads);
    PhiloxWords c = philox(seed, counter + at.quotient / 4, at.rest);
    for (int k = 0; k < 4; k++) out[k * n + i] = c.w[k];
  });
}

#endif
