// The choice of a method, and the two simplest: nearest-exact and area.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "resize/resize.h"
#include "runtime/runtime.h"
#include "shared/checks.h"

namespace latentkit {

/* ---- nearest-exact: each output is the input whose middle is nearest to its own ---- */
namespace {

/* Input positions as PyTorch rounds them: the product in double, then a float, then down. */
std::vector<int32_t> nearest_of(size_t in, size_t out) {
  const float ratio = static_cast<float>(in) / static_cast<float>(out);
  std::vector<int32_t> at(out);
  for (size_t i = 0; i < out; i++) {
    const double middle = (static_cast<double>(i) + 0.5) * static_cast<double>(ratio);
    const auto position = static_cast<size_t>(std::floor(static_cast<float>(middle)));
    at[i] = static_cast<int32_t>(std::min(position, in - 1));
  }
  return at;
}

/* Where the values of each output row are in an input row: one position a pixel, or one a value. */
std::vector<int32_t> columns_of(const Pictures &of) {
  const std::vector<int32_t> pixels = nearest_of(of.in_w, of.out_w);
  const size_t each = fills_vector(of) ? 1 : of.channels;
  std::vector<int32_t> at(of.out_w * each);
  for (size_t i = 0; i < at.size(); i++) {
    at[i] = static_cast<int32_t>(static_cast<size_t>(pixels[i / each]) * of.channels + i % each);
  }
  return at;
}

}  // namespace

void resize_nearest(float *out, const float *x, const Pictures &of) {
  const std::vector<int32_t> rows = nearest_of(of.in_h, of.out_h), columns = columns_of(of);
  const auto last = [&](size_t i) { return static_cast<size_t>(columns[i]); };
  const size_t inside = fills_vector(of) ? whole_pixels(of, last) : 0;
  // the row that this worker wrote last, and what it was made of
  struct Written {
    const float *source = nullptr, *row = nullptr;
  };
  for_rows(
      of, of.out_row(), 0, [](float *) { return Written{}; },
      [&](Written &before, size_t picture, size_t y) {
        const float *source = x + picture * of.in_picture() + static_cast<size_t>(rows[y]) * of.in_row();
        float *to = out + (picture * of.out_h + y) * of.out_row();
        if (source == before.source) std::copy_n(before.row, of.out_row(), to);
        else if (!fills_vector(of)) kernels().nearest_across(to, source, columns.data(), columns.size());
        else kernels().nearest_pixels(to, source, columns.data(), of.channels, inside, of.out_w);
        before = {source, to};
      });
}

/* ---- area: each output is the mean of the whole inputs it covers, as in PyTorch's adaptive average pool ---- */
namespace {

struct Window {
  size_t first, width;
};

Window window_at(size_t i, size_t in, size_t out) {
  const size_t first = i * in / out, end = ((i + 1) * in + out - 1) / out;
  return {first, end - first};
}

bool is_power_of_two(float x) {
  int exponent;
  return std::frexp(x, &exponent) == 0.5f;
}

/* Windows of the columns, for the kernels: all are as wide as the narrowest or one more. */
struct Windows {
  size_t least;
  std::vector<int32_t> first, more;  /* more: empty if all are equally wide */
  std::vector<float> widths, shares; /* shares: 1 / widths, empty unless that is exact for all */

  explicit Windows(const Pictures &of) : least(SIZE_MAX) {
    const size_t each = fills_vector(of) ? 1 : of.channels, n = of.out_w * each;
    first.resize(n + kPadding);
    widths.resize(n + kPadding, 1.0f);
    for (size_t i = 0; i < of.out_w; i++) {
      const size_t width = window_at(i, of.in_w, of.out_w).width;
      if (i > 0 && width != least) more.resize(n + kPadding);
      least = std::min(least, width);
    }
    for (size_t i = 0; i < n; i++) {
      const Window window = window_at(i / each, of.in_w, of.out_w);
      const size_t at = window.first * of.channels + i % each;
      first[i] = static_cast<int32_t>(at);
      if (!more.empty()) more[i] = static_cast<int32_t>(at + (window.width - least) * least * of.channels);
      widths[i] = static_cast<float>(window.width);
    }
    if (std::all_of(widths.begin(), widths.end(), is_power_of_two)) {
      for (const float width : widths) shares.push_back(1.0f / width);
    }
  }
};

}  // namespace

void resize_area(float *out, const float *x, const Pictures &of) {
  const Windows columns(of);
  const auto last = [&](size_t i) {
    return static_cast<size_t>(columns.first[i]) + (static_cast<size_t>(columns.widths[i]) - 1) * of.channels;
  };
  const size_t inside = fills_vector(of) ? whole_pixels(of, last) : 0;
  const size_t read = of.in_row() * (of.in_h / of.out_h + 1);
  for_rows(
      of, std::max(of.out_row(), read), 0, [](float *) { return 0; },
      [&](int, size_t picture, size_t y) {
        const Window rows = window_at(y, of.in_h, of.out_h);
        const float *top = x + picture * of.in_picture() + rows.first * of.in_row();
        float *to = out + (picture * of.out_h + y) * of.out_row();
        if (fills_vector(of)) {
          kernels().area_pixels(to, top, of.in_row(), rows.width, columns.first.data(), columns.widths.data(),
                                columns.shares.empty() ? nullptr : columns.shares.data(), of.channels, inside,
                                of.out_w);
        } else {
          kernels().area_across(to, top, of.in_row(), rows.width, columns.first.data(),
                                columns.more.empty() ? nullptr : columns.more.data(), columns.widths.data(),
                                columns.least, of.channels, of.out_row());
        }
      });
}

/* ---- the choice ---- */
namespace {

constexpr const char *kNames[ENGINE_RESIZE_METHOD_COUNT] = {
    "nearest-exact",  "bilinear",   "bicubic",         "area",           "bislerp",       "lanczos",
    "pillow-nearest", "pillow-box", "pillow-bilinear", "pillow-hamming", "pillow-bicubic"};

engine_status check(size_t out_len, size_t x_len, const engine_resize_options &options, bool *nothing) {
  if (options.method < 0 || options.method >= ENGINE_RESIZE_METHOD_COUNT) return ENGINE_BAD_ARGUMENT;
  if (options.pixels && options.inner != 1) return ENGINE_BAD_ARGUMENT;
  size_t planes;
  if (!elements({1, options.batch, options.channels, options.inner}, &planes)) return ENGINE_BAD_LENGTH;
  const engine_status status =
      check_resize(out_len, x_len, planes, options.in_h, options.in_w, options.out_h, options.out_w, nothing);
  if (status != ENGINE_OK || *nothing) return status;
  // kernels index the values of a row with 32 bits
  const size_t step = options.pixels ? options.channels : 1, most = INT32_MAX / step;
  if (options.in_w > most || options.out_w > most) return ENGINE_BAD_ARGUMENT;
  const bool has_bytes = options.pixels && options.channels <= 4;
  return options.method >= ENGINE_LANCZOS && !has_bytes ? ENGINE_BAD_ARGUMENT : ENGINE_OK;
}

Pictures pictures_of(const engine_resize_options &o) {
  if (o.pixels) return {o.batch, o.in_h, o.in_w, o.out_h, o.out_w, o.channels};
  return {o.batch * o.channels * o.inner, o.in_h, o.in_w, o.out_h, o.out_w, 1};
}

}  // namespace
}  // namespace latentkit

const char *engine_resize_method_name(int method) {
  return method < 0 || method >= ENGINE_RESIZE_METHOD_COUNT ? nullptr : latentkit::kNames[method];
}

engine_status engine_resize(engine_f32 out, engine_cf32 x, const engine_resize_options *options) {
  using namespace latentkit;
  bool nothing = false;
  const engine_status status = check(out.len, x.len, *options, &nothing);
  if (status != ENGINE_OK || nothing) return status;
  return guarded([&] {
    const Pictures of = pictures_of(*options);
    switch (options->method) {
      case ENGINE_NEAREST_EXACT: resize_nearest(out.data, x.data, of); break;
      case ENGINE_BILINEAR: resize_bilinear(out.data, x.data, of); break;
      case ENGINE_BICUBIC: resize_bicubic(out.data, x.data, of); break;
      case ENGINE_AREA: resize_area(out.data, x.data, of); break;
      case ENGINE_BISLERP: resize_bislerp(out.data, x.data, *options); break;
      default: resize_bytes(out.data, x.data, of, options->method); break;
    }
    return ENGINE_OK;
  });
}
