// injectNoise: every leaf goes through all its steps while it is in the first cache.
#include <algorithm>
#include <cstring>
#include <vector>

#include "reduce.h"
#include "resize/resize.h"
#include "runtime/dispatch.h"
#include "runtime/spans.h"
#include "shared/checks.h"

namespace latentkit {
namespace {

struct Inputs {
  const float *base, *noise;
  bool average;
  float strength;

  /* Adds or averages elements [begin, begin + count) into buffer. */
  const float *combine(size_t begin, size_t count, float *buffer) const {
    if (average) kernels().average(buffer, base + begin, noise + begin, count, 0);
    else kernels().axpy(buffer, base + begin, noise + begin, strength, count, 0);
    return buffer;
  }
};

struct Mask {
  const float *data = nullptr; /* [count, plane]; NULL: none */
  size_t count = 0, channels = 0, plane = 0;
  std::vector<float> resized;

  /* Blends values with base over elements [begin, begin + count), plane by plane. */
  void blend(float *values, const float *base, size_t begin, size_t count_here) const {
    for (size_t done = 0; done < count_here;) {
      size_t at = begin + done, within = at % plane, image = at / plane / channels;
      size_t run = std::min(plane - within, count_here - done);
      kernels().blend(values + done, values + done, base + at, data + image % count * plane + within, run, 0);
      done += run;
    }
  }
};

/* The options are checked. Throws std::bad_alloc. */
Mask prepare_mask(const engine_inject_options &options, size_t n) {
  Mask mask;
  if (options.mask.len == 0 || n == 0) return mask;
  const engine_shape4 &shape = options.shape;
  mask.count = options.mask_n;
  mask.channels = shape.c;
  mask.plane = shape.h * shape.w;
  mask.data = options.mask.data;
  if (options.mask_h != shape.h || options.mask_w != shape.w) {
    mask.resized.resize(mask.count * mask.plane);
    const Pictures masks = {mask.count, options.mask_h, options.mask_w, shape.h, shape.w, 1};
    resize_bilinear(mask.resized.data(), options.mask.data, masks);
    mask.data = mask.resized.data();
  }
  return mask;
}

engine_status inject(float *out, size_t n, const Inputs &inputs, const engine_inject_options &options) {
  const Mask mask = prepare_mask(options, n);
  float divisor = 1.0f;
  if (options.normalize && n > 0) {
    // the sum is formed anew in every pass: out may be base or noise, and must stay untouched until the last
    divisor =
        deviation(n, [&](size_t begin, size_t count, float *buffer) { return inputs.combine(begin, count, buffer); });
    if (divisor == 0.0f) return ENGINE_ZERO_DEVIATION;
  }
  bool mixed = options.mix > 0.0;
  const MixFactors mix(options.mix);
  for_ranges(n, kLeavesPerChunk * kLeaf, [&](size_t begin, size_t end) {
    float buffer[kLeaf];
    for (size_t i = begin; i < end; i += kLeaf) {
      size_t count = std::min(kLeaf, end - i);
      inputs.combine(i, count, buffer);
      if (options.normalize) kernels().divide(buffer, buffer, divisor, count, 0);
      if (mask.data != nullptr) mask.blend(buffer, inputs.base, i, count);
      if (mixed) kernels().mix(buffer, buffer, options.random.data + i, mix.keep, mix.add, mix.length, count, 0);
      std::memcpy(out + i, buffer, count * sizeof(float));
    }
  });
  return ENGINE_OK;
}

}  // namespace
}  // namespace latentkit

engine_status engine_inject_noise(engine_f32 out, engine_cf32 base, engine_cf32 noise,
                                  const engine_inject_options *options) {
  const engine_status status = latentkit::check_inject(out.len, base.len, noise.len, *options);
  if (status != ENGINE_OK) return status;
  latentkit::Inputs inputs{base.data, noise.data, options->average != 0, static_cast<float>(options->strength)};
  return latentkit::guarded([&] { return latentkit::inject(out.data, out.len, inputs, *options); });
}
