// The Philox stream: the four words of a counter give normals that lie one launch of PyTorch's apart.
#pragma once

#include "kernels/grid.h"
#include "kernels/kernels.h"
#include "kernels/lane.h"
#include "shared/elementwise.h"
#include "shared/philox.h"

// decision 85
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

/* Calls body(i, v, left, fetched) for elements i to i + 3 of n, i a multiple of 4: v are their normals, the first
 * `left` of them valid. A thread computes those of four neighbouring counters, four groups that lie a launch apart.
 * fetched is fetch(i), requested before the normals are computed, so that their arithmetic hides the wait for the
 * memory. */
template <class Fetch, class Body>
LK_INLINE void for_normals(uint64_t n, const lk_draw &draw, Fetch fetch, Body body) {
  const Scale scaled = {draw.k};
  for_each(draw.counters / 4, [=](uint64_t quad) {
    const Divided at = divided(4 * quad, draw.threads);
    const uint64_t apart = draw.threads.by;
    uint64_t i = at.quotient * 4 * apart + at.rest;
    if (i >= n) return;
    PhiloxWords c[4];
    LK_UNROLL
    for (int k = 0; k < 4; k++) c[k] = philox(draw.seed, draw.first + at.quotient, at.rest + k);
    LK_ROLLED
    for (int pair = 0; pair < 2; pair++) {
      const uint64_t second = i + apart;
      const auto first_fetched = fetch(i), second_fetched = fetch(second < n ? second : i);
      float sine[4], cosine[4];
      LK_UNROLL
      for (int k = 0; k < 4; k++) {
        const uint32_t *w = c[k].w;
        philox_pair(pair == 0 ? w[0] : w[2], pair == 0 ? w[1] : w[3], &sine[k], &cosine[k]);
      }
      body(i, float4{scaled(sine[0]), scaled(sine[1]), scaled(sine[2]), scaled(sine[3])}, n - i, first_fetched);
      if (second >= n) return;
      body(second, float4{scaled(cosine[0]), scaled(cosine[1]), scaled(cosine[2]), scaled(cosine[3])}, n - second,
           second_fetched);
      if ((i = second + apart) >= n) return;
    }
  });
}

/* one(i, value) for each of up to four values. */
template <class One>
LK_INLINE void one_by_one(uint64_t i, float4 v, uint64_t left, One one) {
  one(i, v.x);
  if (left > 1) one(i + 1, v.y);
  if (left > 2) one(i + 2, v.z);
  if (left > 3) one(i + 3, v.w);
}

}  // namespace

LK_KERNEL lk_philox_normals(float *out, lk_draw draw, uint64_t n) {
  const bool quads = aligned(out);
  for_normals(
      n, draw, [](uint64_t) { return 0; },
      [=](uint64_t i, float4 v, uint64_t left, int) {
        if (quads && left > 3) store4(out + i, v);
        else one_by_one(i, v, left, [=](uint64_t at, float normal) { out[at] = normal; });
      });
}

LK_KERNEL lk_philox_words(uint32_t *out, uint64_t n, uint64_t seed, uint64_t counter, lk_divisor threads) {
  for_each(n, [=](uint64_t i) {
    Divided at = divided(i, threads);
    PhiloxWords c = philox(seed, counter + at.quotient / 4, at.rest);
    for (int k = 0; k < 4; k++) out[k * n + i] = c.w[k];
  });
}
