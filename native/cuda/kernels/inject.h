// injectNoise in one pass: add or average, normalise, mask, mix.
#ifndef LATENTKIT_CUDA_INJECT_H
#define LATENTKIT_CUDA_INJECT_H

#include "kernels/grid.h"
#include "kernels/kernels.h"
#include "kernels/noise.h"
#include "kernels/planes.h"
#include "shared/elementwise.h"

namespace {

struct Injection {
  lk_injection how;
  float deviation;

  explicit LK_INLINE Injection(const lk_injection &given)
      : how(given), deviation(given.spread != nullptr ? given.spread->deviation : 1.0f) {}

  /* Else the caller is told, and its memory stays. */
  LK_INLINE bool possible() const { return deviation != 0.0f; }

  LK_INLINE float operator()(float base, float noise, float mask, float random) const {
    float v = how.values.average ? Average{}(base, noise) : Axpy{how.values.k}(base, noise);
    if (how.spread != nullptr) v = Divide{deviation}(v);
    if (how.mask.data != nullptr) v = Blend{}(mask, v, base);
    if (how.mixed) v = Mix{how.keep, how.add, how.length}(v, random);
    return v;
  }
};

}  // namespace

LK_KERNEL lk_inject(float *out, lk_injection how, uint64_t n) {
  const Injection op(how);
  if (!op.possible()) return;
  const float *base = how.values.x, *noise = how.values.noise, *random = how.random;
  const bool masked = how.mask.data != nullptr, mixed = how.mixed;
  const bool quads = aligned(out) && aligned(base) && aligned(noise) && (!mixed || aligned(random)) &&
                     (!masked || quads_of(how.mask));
  for_quads(
      n, quads,
      [=](uint64_t i) {
        const float4 none = {0, 0, 0, 0};
        float4 b = load4(base + i), e = load4(noise + i), r = mixed ? load4(random + i) : none;
        float4 m = masked ? mask4_at(op.how.mask, i) : none;
        store4(out + i, float4{op(b.x, e.x, m.x, r.x), op(b.y, e.y, m.y, r.y), op(b.z, e.z, m.z, r.z),
                               op(b.w, e.w, m.w, r.w)});
      },
      [=](uint64_t i) {
        out[i] = op(base[i], noise[i], masked ? mask_at(op.how.mask, i) : 0.0f, mixed ? random[i] : 0.0f);
      });
}

LK_KERNEL lk_inject_drawn(float *out, lk_injection how, lk_draw draw, uint64_t n) {
  how.mask.resized = 0; // known here, the resize is not compiled in
  const Injection op(how);
  if (!op.possible()) return;
  const float *base = how.values.x, *noise = how.values.noise;
  const bool masked = how.mask.data != nullptr;
  for_normals(n, draw, [=](uint64_t i, float normal) {
    out[i] = op(base[i], noise[i], masked ? mask_at(op.how.mask, i) : 0.0f, normal);
  });
}

#endif
