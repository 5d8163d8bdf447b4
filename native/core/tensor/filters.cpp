// Filters of pictures whose colours lie side by side: a separable convolution, modes of blending, least and greatest
// neighbours.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/runtime.h"
#include "shared/checks.h"

namespace latentkit {
namespace {

constexpr size_t kMaxTaps = 4095;

// decisions: Nodes correct the reference's faults
/* Position i of a line of n that is mirrored at the centres of its first and last element, as often as needed. */
size_t reflected(ptrdiff_t i, size_t n) {
  if (n == 1) return 0;
  const auto last = static_cast<ptrdiff_t>(n) - 1, period = 2 * last;
  const ptrdiff_t at = (i % period + period) % period;
  return static_cast<size_t>(at <= last ? at : period - at);
}

/* One picture, its weights, and how many taps lie on each side of the middle one. */
struct Convolution {
  const float *x;
  size_t height, width, channels;
  engine_cf32 weights;
  size_t reach;

  size_t row() const { return width * channels; }
  size_t padded() const { return (width + 2 * reach) * channels; }

  const float *source(size_t y, size_t tap) const {
    const auto from = static_cast<ptrdiff_t>(y + tap) - static_cast<ptrdiff_t>(reach);
    return x + reflected(from, height) * row();
  }

  /* out[i] = sum of weight[t] * line(t)[i], the terms added in order. */
  template <class Line>
  void sum(float *out, Line &&line) const {
    const size_t n = row();
    kernels().scale(out, line(0), weights.data[0], n, 0);
    for (size_t tap = 1; tap < weights.len; tap++) kernels().axpy(out, out, line(tap), weights.data[tap], n, 0);
  }

  /* Row y of the result; the weighted rows around it, `padded` floats, are mirrored at both ends before they are summed
   * across. */
  void line(float *out, size_t y, float *between) const {
    const size_t pixel = channels * sizeof(float);
    float *inner = between + reach * channels;
    sum(inner, [&](size_t tap) { return source(y, tap); });
    for (size_t k = 1; k <= reach; k++) {
      const auto step = static_cast<ptrdiff_t>(k);
      std::memcpy(inner - k * channels, inner + reflected(-step, width) * channels, pixel);
      const size_t after = reflected(static_cast<ptrdiff_t>(width) - 1 + step, width);
      std::memcpy(inner + (width - 1 + k) * channels, inner + after * channels, pixel);
    }
    sum(out, [&](size_t tap) { return between + tap * channels; });
  }
};

float soft_light(float a, float b) {
  const float curve = a <= 0.25f ? ((16 * a - 12) * a + 4) * a : std::sqrt(a);
  return b <= 0.5f ? a - (1 - 2 * b) * a * (1 - a) : a + (2 * b - 1) * (curve - a);
}

float overlay(float a, float b) { return a <= 0.5f ? 2 * a * b : 1 - 2 * (1 - a) * (1 - b); }

/* A NaN stays one. */
float clamped(float v) { return v < 0 ? 0 : v > 1 ? 1 : v; }

/* a * (1 - factor) + mode(a, b) * factor, clamped to 0 … 1. */
template <class Mode>
engine_status blend(engine_f32 out, engine_cf32 a, engine_cf32 b, double factor, Mode mode) {
  const float of_a = static_cast<float>(1 - factor), of_mode = static_cast<float>(factor);
  for_ranges(out.len, kGrain, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; i++) out.data[i] = clamped(a.data[i] * of_a + mode(a.data[i], b.data[i]) * of_mode);
  });
  return ENGINE_OK;
}

struct Lines {
  size_t outer, count, inner;
};

template <bool kLeast>
float better(float a, float b) {
  return kLeast ? (b < a ? b : a) : (b > a ? b : a);
}

/* Positions begin to end of one line. */
template <bool kLeast, bool kMore>
void extremes(float *out, const float *line, const Lines &of, size_t begin, size_t end, size_t before, size_t after) {
  const auto run = [out](size_t to, const float *first, const float *second, size_t n) {
    float *into = out + to;
    for (size_t i = 0; i < n; i++) {
      const float extreme = better<kLeast>(first[i], second[i]);
      into[i] = kMore ? better<kLeast>(into[i], extreme) : extreme;
    }
  };
  const size_t last = of.count - 1;
  for (size_t i = begin; i < end;) {
    // positions whose neighbours both lie within the line are one run
    const size_t inside = i >= before && i + after <= last ? std::min(end, of.count - after) - i : 0;
    const size_t positions = std::max<size_t>(inside, 1);
    const size_t first = i < before ? 0 : i - before, second = std::min(i + after, last);
    run(i * of.inner, line + first * of.inner, line + second * of.inner, positions * of.inner);
    i += positions;
  }
}

template <bool kLeast, bool kMore>
void all_extremes(float *out, const float *x, const Lines &of, size_t before, size_t after) {
  for_items(of.outer * of.count, of.inner, [&](size_t begin, size_t end) {
    while (begin < end) {
      const size_t line = begin / of.count, start = line * of.count, stop = std::min(end, start + of.count);
      const size_t offset = start * of.inner;
      extremes<kLeast, kMore>(out + offset, x + offset, of, begin - start, stop - start, before, after);
      begin = stop;
    }
  });
}

}  // namespace
}  // namespace latentkit

engine_status engine_extremes_along(engine_f32 out, engine_cf32 x, size_t outer, size_t count, size_t inner,
                                    size_t before, size_t after, int least, int more) {
  using namespace latentkit;
  size_t size;
  if (!elements({1, outer, count, inner}, &size)) return ENGINE_BAD_LENGTH;
  if (out.len != size || x.len != size) return ENGINE_BAD_LENGTH;
  if (size == 0) return ENGINE_OK;
  const Lines of = {outer, count, inner};
  before = std::min(before, count), after = std::min(after, count);
  if (least) {
    more ? all_extremes<true, true>(out.data, x.data, of, before, after)
         : all_extremes<true, false>(out.data, x.data, of, before, after);
  } else {
    more ? all_extremes<false, true>(out.data, x.data, of, before, after)
         : all_extremes<false, false>(out.data, x.data, of, before, after);
  }
  return ENGINE_OK;
}

engine_status engine_convolve_image(engine_f32 out, engine_cf32 x, size_t batch, size_t height, size_t width,
                                    size_t channels, engine_cf32 weights) {
  using namespace latentkit;
  size_t count;
  if (!elements({batch, height, width, channels}, &count)) return ENGINE_BAD_LENGTH;
  if (out.len != count || x.len != count) return ENGINE_BAD_LENGTH;
  if (weights.len % 2 == 0 || weights.len > kMaxTaps) return ENGINE_BAD_ARGUMENT;
  if (count == 0) return ENGINE_OK;
  return guarded([&] {
    const Convolution first = {x.data, height, width, channels, weights, weights.len / 2};
    const size_t rows = batch * height, row = first.row();
    // a small picture is one block, so one thread's
    const size_t each = count <= ENGINE_PARALLEL_MIN ? rows : 1;
    for_workers(rows / each, first.padded() * sizeof(float), [&](uint8_t *memory, auto &&take) {
      for (size_t block; take(&block);) {
        for (size_t line = block * each; line < (block + 1) * each; line++) {
          Convolution item = first;
          item.x += line / height * height * row;
          item.line(out.data + line * row, line % height, reinterpret_cast<float *>(memory));
        }
      }
    });
    return ENGINE_OK;
  });
}

void engine_clamp_to_unit(engine_f32 x) {
  latentkit::for_ranges(x.len, latentkit::kGrain, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; i++) x.data[i] = latentkit::clamped(x.data[i]);
  });
}

engine_status engine_blend_images(engine_f32 out, engine_cf32 a, engine_cf32 b, engine_blend_mode mode, double factor) {
  using latentkit::blend;
  if (a.len != out.len || b.len != out.len) return ENGINE_BAD_LENGTH;
  switch (mode) {
    case ENGINE_BLEND_NORMAL: return blend(out, a, b, factor, [](float, float y) { return y; });
    case ENGINE_BLEND_MULTIPLY: return blend(out, a, b, factor, [](float x, float y) { return x * y; });
    case ENGINE_BLEND_SCREEN: return blend(out, a, b, factor, [](float x, float y) { return 1 - (1 - x) * (1 - y); });
    case ENGINE_BLEND_OVERLAY:
      return blend(out, a, b, factor, [](float x, float y) { return latentkit::overlay(x, y); });
    case ENGINE_BLEND_SOFT_LIGHT:
      return blend(out, a, b, factor, [](float x, float y) { return latentkit::soft_light(x, y); });
    case ENGINE_BLEND_DIFFERENCE: return blend(out, a, b, factor, [](float x, float y) { return x - y; });
  }
  return ENGINE_BAD_ARGUMENT;
}
