// Bislerp: the vectors of the channels turned into each other along the width, then along the height.
#include <algorithm>
#include <cmath>
#include <vector>

#include "lk_libm.h"
#include "resize/resize.h"
#include "runtime/runtime.h"
#include "shared/resample.h"

namespace latentkit {
namespace {

/* Cosines beyond this count as one direction, or as two opposite ones. */
constexpr double kParallel = 1.0 - 1e-5;

/* Vectors of one chunk: each costs as much as a hundred additions. */
constexpr size_t kVectors = 1024;

/* Two positions of the input and how far from the first to the second. */
struct Step {
  size_t first, second;
  double ratio;
};

/*
 * The reference resizes the list of positions 0, 1 … bilinearly, as an image, and the list of the next ones, 1, 2 …
 * with the last one twice: whole parts are the positions, the fraction of the first list is the ratio. The same float32
 * arithmetic gives the same positions when a sum falls short of a whole number.
 */
std::vector<Step> steps_of(size_t in, size_t out) {
  const float ratio = static_cast<float>(in) / static_cast<float>(out);
  const auto next = [in](int32_t i) { return static_cast<float>(i + (static_cast<size_t>(i) + 1 < in)); };
  std::vector<Step> steps(out);
  for (size_t i = 0; i < out; i++) {
    const Tap tap = tap_at(static_cast<uint32_t>(i), static_cast<uint32_t>(in), ratio);
    const auto mixed = [&tap](float a, float b) { return std::fmaf(b, tap.second_weight, a * tap.first_weight); };
    const float first = mixed(static_cast<float>(tap.first), static_cast<float>(tap.second));
    const float second = mixed(next(tap.first), next(tap.second));
    const float whole = std::floor(first);
    steps[i] = {static_cast<size_t>(whole), static_cast<size_t>(second), static_cast<double>(first - whole)};
  }
  return steps;
}

/* What both vectors weigh in the one between them: their norms mixed, times its direction. */
struct Weights {
  double first, second;
};

Weights weights_of(double first_square, double second_square, double product, double ratio) {
  const double a = std::sqrt(first_square), b = std::sqrt(second_square), rest = 1.0 - ratio;
  // a vector of zeros has no direction
  const double from_first = a == 0.0 ? 0.0 : 1.0 / a, from_second = b == 0.0 ? 0.0 : 1.0 / b;
  const double cosine = product * from_first * from_second;
  if (cosine > kParallel || cosine < -kParallel) return {rest, ratio};
  const double angle = lk_acos(cosine), norm = (a * rest + b * ratio) / std::sqrt((1.0 - cosine) * (1.0 + cosine));
  return {lk_sin(rest * angle) * norm * from_first, lk_sin(ratio * angle) * norm * from_second};
}

/* How far apart neighbours along each axis lie in memory. */
struct Strides {
  size_t batch, inner, channel, across, along;
};

/* One pass: positions along one axis are resized, those across stay. */
struct Pass {
  size_t batch, inner, channels, across;
  Strides in, out;
  std::vector<Step> steps;

  void at(float *to, const float *x, const Step &step) const {
    const float *first = x + step.first * in.along, *second = x + step.second * in.along;
    double first_square = 0.0, second_square = 0.0, product = 0.0;
    for (size_t c = 0; c < channels; c++) {
      const double a = first[c * in.channel], b = second[c * in.channel];
      first_square += a * a;
      second_square += b * b;
      product += a * b;
    }
    const Weights weights = weights_of(first_square, second_square, product, step.ratio);
    for (size_t c = 0; c < channels; c++) {
      const double a = first[c * in.channel], b = second[c * in.channel];
      to[c * out.channel] = static_cast<float>(a * weights.first + b * weights.second);
    }
  }

  void same(float *to, const float *x, const Step &step) const {
    for (size_t c = 0; c < channels; c++) to[c * out.channel] = x[step.first * in.along + c * in.channel];
  }

  void line(float *to, const float *x, size_t number) const {
    const size_t side = number % across, i = number / across % inner, item = number / across / inner;
    x += item * in.batch + i * in.inner + side * in.across;
    to += item * out.batch + i * out.inner + side * out.across;
    for (const Step &step : steps) {
      if (step.ratio == 0.0) same(to, x, step);
      else at(to, x, step);
      to += out.along;
    }
  }

  void run(float *to, const float *x) const {
    const size_t lines = batch * inner * across;
    const size_t per_chunk = kVectors / steps.size() + 1;
    for_chunks((lines + per_chunk - 1) / per_chunk, [&](size_t chunk) {
      const size_t end = std::min(lines, (chunk + 1) * per_chunk);
      for (size_t i = chunk * per_chunk; i < end; i++) line(to, x, i);
    });
  }
};

/* Strides of planes or pixels of these sides, for a pass along the width or along the height. */
Strides strides_of(const engine_resize_options &o, size_t h, size_t w, bool along_width) {
  const size_t plane = h * w;
  const size_t step = o.pixels ? o.channels : 1, row = w * step;
  const Strides wide = {o.channels * o.inner * plane, plane, o.pixels ? 1 : o.inner * plane, row, step};
  if (along_width) return wide;
  return {wide.batch, wide.inner, wide.channel, step, row};
}

}  // namespace

void resize_bislerp(float *out, const float *x, const engine_resize_options &o) {
  const Scratch memory = scratch(o.batch * o.channels * o.inner * o.in_h * o.out_w * sizeof(float));
  float *wide = reinterpret_cast<float *>(memory.get());
  const Pass widen = {o.batch,
                      o.inner,
                      o.channels,
                      o.in_h,
                      strides_of(o, o.in_h, o.in_w, true),
                      strides_of(o, o.in_h, o.out_w, true),
                      steps_of(o.in_w, o.out_w)};
  const Pass heighten = {o.batch,
                         o.inner,
                         o.channels,
                         o.out_w,
                         strides_of(o, o.in_h, o.out_w, false),
                         strides_of(o, o.out_h, o.out_w, false),
                         steps_of(o.in_h, o.out_h)};
  widen.run(wide, x);
  heighten.run(out, wide);
}

}  // namespace latentkit
