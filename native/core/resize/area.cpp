// Area: each output is the mean of the inputs that it covers, whole ones, as PyTorch's adaptive average pool.
#include <algorithm>
#include <cmath>
#include <vector>

#include "resize.h"
#include "runtime/dispatch.h"

namespace latentkit {
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
  std::vector<int32_t> first, more;  /* more: empty where all are equally wide */
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

}  // namespace latentkit
