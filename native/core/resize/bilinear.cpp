// Bilinear: each output lies between two inputs across and two down; and pictures from planes in one pass.
#include <cstdint>
#include <vector>

#include "engine.h"
#include "resize/resize.h"
#include "runtime/runtime.h"
#include "shared/checks.h"
#include "shared/resample.h"

namespace latentkit {
namespace {

/* For each output position the two input positions and their weights, a row of each for the kernels. */
struct Taps {
  std::vector<int32_t> first, second;
  std::vector<float> first_weight, second_weight;

  /* Positions are of pixels, which have `colours` values side by side. */
  Taps(size_t in, size_t out, size_t colours)
      : first(out * colours + kPadding),
        second(out * colours + kPadding),
        first_weight(out * colours + kPadding),
        second_weight(out * colours + kPadding) {
    const float ratio = static_cast<float>(in) / static_cast<float>(out);
    for (size_t i = 0, at = 0; i < out; i++) {
      const Tap tap = tap_at(static_cast<uint32_t>(i), static_cast<uint32_t>(in), ratio);
      for (size_t colour = 0; colour < colours; colour++, at++) {
        first[at] = static_cast<int32_t>(static_cast<size_t>(tap.first) * colours + colour);
        second[at] = static_cast<int32_t>(static_cast<size_t>(tap.second) * colours + colour);
        first_weight[at] = tap.first_weight;
        second_weight[at] = tap.second_weight;
      }
    }
  }
};

/* Taps of pixels that fill a vector: both of one pixel side by side, by the first of its colours. */
struct PixelTaps {
  size_t inside;
  std::vector<int32_t> at;
  std::vector<float> weights;

  explicit PixelTaps(const Pictures &of) : at(2 * of.out_w), weights(2 * of.out_w) {
    const Taps taps(of.in_w, of.out_w, 1);
    const auto channels = static_cast<int32_t>(of.channels);
    for (size_t i = 0; i < of.out_w; i++) {
      at[2 * i] = taps.first[i] * channels;
      at[2 * i + 1] = taps.second[i] * channels;
      weights[2 * i] = taps.first_weight[i];
      weights[2 * i + 1] = taps.second_weight[i];
    }
    inside = whole_pixels(of, [&](size_t i) { return static_cast<size_t>(at[2 * i + 1]); });
  }
};

/* Rows as wide as the output, of single values whose taps are listed or of whole pixels. */
struct ByValue {
  Taps taps;

  explicit ByValue(const Pictures &of) : taps(of.in_w, of.out_w, of.channels) {}

  void across(float *out, const float *row, const Pictures &of) const {
    kernels().resize_across(out, row, of.in_row(), taps.first.data(), taps.second.data(), taps.first_weight.data(),
                            taps.second_weight.data(), of.out_row());
  }
};

struct ByPixel {
  PixelTaps taps;

  explicit ByPixel(const Pictures &of) : taps(of) {}

  void across(float *out, const float *row, const Pictures &of) const {
    kernels().linear_pixels(out, row, taps.at.data(), taps.weights.data(), of.channels, taps.inside, of.out_w);
  }
};

/* The two input rows that are nearest to one of the output, as long as that, and what they weigh. */
struct Pair {
  const float *top, *bottom;
  float top_weight, bottom_weight;
};

/* An enlarged picture needs each of its rows many times: two of them stay resized across. */
template <class Columns>
class Rows {
 public:
  /* Floats of memory that `rows` must have. */
  static size_t room(const Pictures &of) { return 2 * (of.out_row() + kPadding); }

  Rows(const Pictures &of, const Taps &taps, const Columns &columns, float *rows)
      : of_(of), taps_(taps), columns_(columns), rows_(rows) {}

  Pair around(const float *picture, size_t y) {
    const float *first = picture + static_cast<size_t>(taps_.first[y]) * of_.in_row();
    const float *second = picture + static_cast<size_t>(taps_.second[y]) * of_.in_row();
    const float *top = across(first, second), *bottom = across(second, first);
    return {top, bottom, taps_.first_weight[y], taps_.second_weight[y]};
  }

 private:
  const float *across(const float *row, const float *other) {
    const size_t slot = sources_[0] == row || (sources_[1] != row && sources_[0] != other) ? 0 : 1;
    float *resized = rows_ + slot * (of_.out_row() + kPadding);
    if (sources_[slot] != row) {
      columns_.across(resized, row, of_);
      sources_[slot] = row;
    }
    return resized;
  }

  const Pictures &of_;
  const Taps &taps_;
  const Columns &columns_;
  float *rows_;
  const float *sources_[2] = {nullptr, nullptr};
};

/* Resizes the rows of the pictures; `between` is the kernel for what lies between two rows. */
template <class Columns, class T>
void resize_rows(T *out, const float *x, const Pictures &of, int stream,
                 void (*between)(T *, const float *, const float *, float, float, size_t, int)) {
  const Taps taps(of.in_h, of.out_h, 1);
  const Columns columns(of);
  const size_t width = of.out_row();
  for_rows(
      of, width, Rows<Columns>::room(of), [&](float *memory) { return Rows<Columns>(of, taps, columns, memory); },
      [&](Rows<Columns> &rows, size_t picture, size_t y) {
        const auto [top, bottom, top_weight, bottom_weight] = rows.around(x + picture * of.in_picture(), y);
        between(out + (picture * of.out_h + y) * width, top, bottom, top_weight, bottom_weight, width, stream);
      });
}

/* Planes x [batch, 3, plane] with their colours side by side: the values are rearranged while they are still few. */
Scratch side_by_side(const float *x, size_t batch, size_t plane) {
  Scratch memory = scratch(batch * plane * 3 * sizeof(float));
  float *to = reinterpret_cast<float *>(memory.get());
  for (size_t item = 0; item < batch; item++, to += 3 * plane) {
    const float *red = x + item * 3 * plane, *green = red + plane, *blue = green + plane;
    for (size_t i = 0; i < plane; i++) {
      to[3 * i] = red[i];
      to[3 * i + 1] = green[i];
      to[3 * i + 2] = blue[i];
    }
  }
  return memory;
}

/* Both ways to finish the resize of pictures. */
template <class Out, class Between>
engine_status resize_pixels(Out out, engine_cf32 x, size_t batch, size_t in_h, size_t in_w, size_t out_h, size_t out_w,
                            Between between) {
  if (batch > SIZE_MAX / 3) return ENGINE_BAD_LENGTH;
  bool nothing = false;
  const engine_status status = check_resize(out.len, x.len, 3 * batch, in_h, in_w, out_h, out_w, &nothing);
  if (status != ENGINE_OK || nothing) return status;
  // kernels index the colours of a row with 32 bits
  if (in_w > INT32_MAX / 3) return ENGINE_BAD_ARGUMENT;
  return guarded([&] {
    const Scratch small = side_by_side(x.data, batch, in_h * in_w);
    const Pictures of = {batch, in_h, in_w, out_h, out_w, 3};
    resize_rows<ByValue>(out.data, reinterpret_cast<const float *>(small.get()), of, 0, between);
    return ENGINE_OK;
  });
}

}  // namespace

void resize_bilinear(float *out, const float *x, const Pictures &of) {
  const int stream = streams(of.out_size());
  if (fills_vector(of)) resize_rows<ByPixel>(out, x, of, stream, kernels().resize_between);
  else resize_rows<ByValue>(out, x, of, stream, kernels().resize_between);
}

}  // namespace latentkit

engine_status engine_resize_bilinear(engine_f32 out, engine_cf32 x, size_t planes, size_t in_h, size_t in_w,
                                     size_t out_h, size_t out_w) {
  using namespace latentkit;
  bool nothing = false;
  const engine_status status = check_resize(out.len, x.len, planes, in_h, in_w, out_h, out_w, &nothing);
  if (status != ENGINE_OK || nothing) return status;
  return guarded([&] {
    resize_bilinear(out.data, x.data, {planes, in_h, in_w, out_h, out_w, 1});
    return ENGINE_OK;
  });
}

engine_status engine_resize_to_image(engine_f32 out, engine_cf32 x, size_t batch, size_t in_h, size_t in_w,
                                     size_t out_h, size_t out_w) {
  using namespace latentkit;
  return resize_pixels(out, x, batch, in_h, in_w, out_h, out_w, kernels().resize_between_in_unit);
}

engine_status engine_resize_to_bytes(engine_u8 out, engine_cf32 x, size_t batch, size_t in_h, size_t in_w, size_t out_h,
                                     size_t out_w) {
  using namespace latentkit;
  return resize_pixels(out, x, batch, in_h, in_w, out_h, out_w, kernels().resize_between_bytes);
}
