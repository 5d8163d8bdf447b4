// Filters of pictures whose colours lie side by side: a separable convolution, and modes of blending.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "runtime/dispatch.h"
#include "runtime/parallel.h"
#include "runtime/scratch.h"
#include "runtime/spans.h"
#include "shared/checks.h"

namespace latentkit {
namespace {

constexpr size_t kMaxTaps = 4095;

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

/* a * (1 - factor) + mode(a, b) * factor, clamped to 0 … 1; a NaN stays one. */
template <class Mode>
engine_status blend(engine_f32 out, engine_cf32 a, engine_cf32 b, double factor, Mode mode) {
  const float of_a = static_cast<float>(1 - factor), of_mode = static_cast<float>(factor);
  for_ranges(out.len, kGrain, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; i++) {
      const float v = a.data[i] * of_a + mode(a.data[i], b.data[i]) * of_mode;
      out.data[i] = v < 0 ? 0 : v > 1 ? 1 : v;
    }
  });
  return ENGINE_OK;
}

}  // namespace
}  // namespace latentkit

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
    const size_t rows = batch * height, room = first.padded(), row = first.row();
    const size_t workers = count <= ENGINE_PARALLEL_MIN ? 1 : std::min(rows, static_cast<size_t>(engine_threads()));
    // bodies must not throw, so all of them get their memory here; each goes from row to row with its own, still warm
    const Scratch memory = scratch(workers * room * sizeof(float));
    std::atomic<size_t> next{0};
    for_chunks(workers, [&](size_t worker) {
      float *between = reinterpret_cast<float *>(memory.get()) + worker * room;
      for (size_t line; (line = next.fetch_add(1, std::memory_order_relaxed)) < rows;) {
        Convolution item = first;
        item.x += line / height * height * row;
        item.line(out.data + line * row, line % height, between);
      }
    });
    return ENGINE_OK;
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
