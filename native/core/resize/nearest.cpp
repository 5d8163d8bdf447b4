// Nearest-exact: each output is the input whose middle is nearest to its own.
#include <algorithm>
#include <cmath>
#include <vector>

#include "resize.h"
#include "runtime/dispatch.h"

namespace latentkit {
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

}  // namespace latentkit
