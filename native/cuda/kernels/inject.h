// injectNoise in one pass: add or average, normalise, mask, mix.
#pragma once

#include "kernels/grid.h"
#include "kernels/kernels.h"
#include "kernels/noise.h"
#include "kernels/planes.h"
#include "shared/elementwise.h"

namespace {

struct Injection {
  lk_injection how;
  float deviation;

  explicit LK_INLINE Injection(const lk_injection &injection)
      : how(injection), deviation(injection.spread != nullptr ? injection.spread->deviation : 1.0f) {}

  /* Else nothing is written; the CPU reports it. */
  LK_INLINE bool possible() const { return deviation != 0.0f; }

  /* True where elements can be read and written in fours. */
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
