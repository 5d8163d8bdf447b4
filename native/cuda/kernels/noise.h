// The Philox stream: the four words of a counter give normals that lie one launch of PyTorch's apart. And injectNoise
// in one pass: add or average, normalise, mask, mix.
#pragma once

#include "kernels/kernels.h"
#include "kernels/planes.h"
#include "kernels/thread.h"
#include "shared/elementwise.h"
#include "shared/normals.h"

// A thread draws four adjacent counters, whose normals are adjacent: some 60 instructions a normal instead of 90.
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

namespace {

struct Injection {
  lk_injection how;
  float deviation;

  explicit LK_INLINE Injection(const lk_injection &injection)
      : how(injection), deviation(injection.spread != nullptr ? injection.spread->deviation : 1.0f) {}

  /* Else nothing is written; the CPU reports it. */
  LK_INLINE bool possible() const { return deviation != 0.0f; }

  /* True if elements can be read and written in fours. */
  LK_INLINE bool quads(const float *out) const {
    return aligned(out) && aligned(how.values.x) && aligned(how.values.noise) && aligned(how.random) &&
           (how.mask.data == nullptr || quads_of(how.mask));
  }

  LK_INLINE float operator()(float base, float noise, float mask, float random) const {
    float v = how.values.average ? Average{}(base, noise) : Axpy{how.values.k}(base, noise);
    if (how.spread != nullptr) v = Divide{deviation}(v);
    if (how.mask.data != nullptr) v = Blend{}(mask, v, base);
    if (how.mixed) v = Mix{how.keep, how.add, how.length}(v, random);
    return v;
  }

  LK_INLINE float one(uint64_t i, float random) const {
    const float mask = how.mask.data != nullptr ? mask_at(how.mask, i) : 0.0f;
    return (*this)(how.values.x[i], how.values.noise[i], mask, random);
  }

  struct Operands {
    float4 base, noise, mask;
  };

  /* The operands of elements i to i + 3. */
  LK_INLINE Operands load(uint64_t i) const {
    return {load4(how.values.x + i), load4(how.values.noise + i),
            how.mask.data != nullptr ? mask4_at(how.mask, i) : float4{0, 0, 0, 0}};
  }

  LK_INLINE float4 four(const Operands &v, float4 r) const {
    const Injection &op = *this;
    const float4 b = v.base, e = v.noise, m = v.mask;
    return {op(b.x, e.x, m.x, r.x), op(b.y, e.y, m.y, r.y), op(b.z, e.z, m.z, r.z), op(b.w, e.w, m.w, r.w)};
  }
};

}  // namespace

LK_KERNEL lk_inject(float *out, lk_injection how, uint64_t n) {
  const Injection op(how);
  if (!op.possible()) return;
  for_quads(
      n, op.quads(out),
      [=](uint64_t i) {
        store4(out + i, op.four(op.load(i), op.how.mixed ? load4(op.how.random + i) : float4{0, 0, 0, 0}));
      },
      [=](uint64_t i) { out[i] = op.one(i, op.how.mixed ? op.how.random[i] : 0.0f); });
}

LK_KERNEL lk_inject_drawn(float *out, lk_injection how, lk_draw draw, uint64_t n) {
  // constants, so that the other cases are not compiled in
  how.mask.resized = 0, how.mixed = 1;
  const Injection op(how);
  if (!op.possible()) return;
  for_normals(
      n, draw, [=](uint64_t i) { return op.load(i); },
      [=](uint64_t i, float4 normals, uint64_t, const Injection::Operands &operands) {
        store4(out + i, op.four(operands, normals));
      });
}
