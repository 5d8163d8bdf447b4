// Sums over a tree whose shape depends only on the length, and injectNoise, which divides by one of them.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "resize/resize.h"
#include "runtime/runtime.h"
#include "shared/checks.h"
#include "shared/tree.h"

namespace latentkit {
namespace {

constexpr size_t kLeaf = LK_LEAF;

/* Leaves one thread takes at once: LK_LEAF elements each. */
constexpr size_t kLeavesPerChunk = kGrain / kLeaf;

/* Adds neighbours, then neighbours of those, until one is left. */
double add_pairwise(std::vector<double> &values) {
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

/* ---- injectNoise: every leaf goes through all its steps while it is in the first cache ---- */
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
    // the sum is computed again in every pass: out may be base or noise, and must stay untouched until the last
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

engine_status engine_std(engine_cf32 x, float *out) {
  return latentkit::guarded([&] {
    *out = latentkit::deviation(x.len, [&](size_t begin, size_t, float *) { return x.data + begin; });
    return ENGINE_OK;
  });
}

engine_status engine_std_items(engine_f32 out, engine_cf32 x) {
  const engine_status checked = latentkit::check_items(out.len, x.len);
  if (checked != ENGINE_OK) return checked;
  for (size_t item = 0; item < out.len; item++) {
    const size_t n = x.len / out.len;
    const engine_status status = engine_std({x.data + item * n, n}, out.data + item);
    if (status != ENGINE_OK) return status;
  }
  return ENGINE_OK;
}

engine_status engine_scaled_error(engine_cf32 low, engine_cf32 high, engine_cf32 previous, double atol, double rtol,
                                  double *out) {
  const size_t n = low.len;
  if (high.len != n || previous.len != n) return ENGINE_BAD_LENGTH;
  return latentkit::guarded([&] {
    const double squares = latentkit::tree_sum(n, [&](size_t i, size_t count) {
      return latentkit::kernels().scaled_errors(low.data + i, high.data + i, previous.data + i, count, atol, rtol);
    });
    *out = root_mean_of(squares, n);
    return ENGINE_OK;
  });
}

engine_status engine_inject_noise(engine_f32 out, engine_cf32 base, engine_cf32 noise,
                                  const engine_inject_options *options) {
  const engine_status status = latentkit::check_inject(out.len, base.len, noise.len, *options);
  if (status != ENGINE_OK) return status;
  latentkit::Inputs inputs{base.data, noise.data, options->average != 0, static_cast<float>(options->strength)};
  return latentkit::guarded([&] { return latentkit::inject(out.data, out.len, inputs, *options); });
}
