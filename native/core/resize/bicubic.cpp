// Bicubic: sums of four rows, each of them a sum of four columns.
#include <algorithm>
#include <cmath>
#include <vector>

#include "resize/resize.h"
#include "runtime/runtime.h"

namespace latentkit {
namespace {

constexpr size_t kTaps = 4;

/* Input positions, the outer ones clamped to the edge, and their weights. */
struct Tap {
  size_t at[kTaps];
  float weights[kTaps];
};

/* Weight of what lies d away: Keys, "Cubic convolution interpolation for digital image processing", 1981, a = -0.75. */
float within_one(float d) { return (1.25f * d - 2.25f) * d * d + 1.0f; }
float beyond_one(float d) { return ((-0.75f * d + 3.75f) * d - 6.0f) * d + 3.0f; }

/* Positions in float32 with a fused multiply-add, as in shared/taps.h, but not clamped. */
Tap tap_at(size_t i, size_t in, float ratio) {
  const float position = std::fmaf(ratio, static_cast<float>(i) + 0.5f, -0.5f);
  const auto most = static_cast<int64_t>(in) - 1;
  const int64_t low = std::min(static_cast<int64_t>(std::floor(position)), most);
  // far beyond 2^24 positions a float steps over pixels
  const float t = std::min(std::max(position - static_cast<float>(low), 0.0f), 1.0f);
  Tap tap = {{}, {beyond_one(t + 1.0f), within_one(t), within_one(1.0f - t), beyond_one(2.0f - t)}};
  for (size_t k = 0; k < kTaps; k++) {
    tap.at[k] = static_cast<size_t>(std::clamp(low + static_cast<int64_t>(k) - 1, int64_t{0}, most));
  }
  return tap;
}

std::vector<Tap> taps_of(size_t in, size_t out) {
  const float ratio = static_cast<float>(in) / static_cast<float>(out);
  std::vector<Tap> taps(out);
  for (size_t i = 0; i < out; i++) taps[i] = tap_at(i, in, ratio);
  return taps;
}

/* Taps of the columns as the kernels take them: those of a pixel side by side, or a list of first ones, of second ones
 * … */
struct Columns {
  size_t stride, inside = 0;
  std::vector<int32_t> at;
  std::vector<float> weights;

  explicit Columns(const Pictures &of) : stride(of.out_row() + kPadding), at(kTaps * stride), weights(kTaps * stride) {
    const std::vector<Tap> taps = taps_of(of.in_w, of.out_w);
    const bool pixels = fills_vector(of);
    const size_t each = pixels ? 1 : of.channels;
    for (size_t i = 0; i < of.out_w * each; i++) {
      for (size_t k = 0; k < kTaps; k++) {
        const size_t to = pixels ? kTaps * i + k : k * stride + i;
        at[to] = static_cast<int32_t>(taps[i / each].at[k] * of.channels + i % each);
        weights[to] = taps[i / each].weights[k];
      }
    }
    if (pixels) inside = whole_pixels(of, [&](size_t i) { return taps[i].at[kTaps - 1] * of.channels; });
  }

  void across(float *out, const float *row, const Pictures &of) const {
    if (fills_vector(of)) {
      kernels().cubic_pixels(out, row, at.data(), weights.data(), of.channels, inside, of.out_w);
    } else {
      kernels().cubic_across(out, row, of.in_row(), at.data(), weights.data(), stride, of.out_row());
    }
  }
};

/* The last four input rows that were made as wide as the output; consecutive rows have separate slots. */
class Rows {
 public:
  static size_t room(const Pictures &of) { return kTaps * (of.out_row() + kPadding); }

  Rows(const Pictures &of, const Columns &columns, float *memory) : of_(of), columns_(columns), memory_(memory) {}

  const float *across(const float *picture, size_t y) {
    const size_t slot = y % kTaps;
    const float *source = picture + y * of_.in_row();
    float *row = memory_ + slot * (of_.out_row() + kPadding);
    if (sources_[slot] != source) columns_.across(row, source, of_);
    sources_[slot] = source;
    return row;
  }

 private:
  const Pictures &of_;
  const Columns &columns_;
  float *memory_;
  const float *sources_[kTaps] = {};
};

}  // namespace

void resize_bicubic(float *out, const float *x, const Pictures &of) {
  const Columns columns(of);
  const std::vector<Tap> taps = taps_of(of.in_h, of.out_h);
  const int stream = streams(of.out_size());
  for_rows(
      of, kTaps * of.out_row(), Rows::room(of), [&](float *memory) { return Rows(of, columns, memory); },
      [&](Rows &rows, size_t picture, size_t y) {
        const float *between[kTaps];
        for (size_t k = 0; k < kTaps; k++) between[k] = rows.across(x + picture * of.in_picture(), taps[y].at[k]);
        float *to = out + (picture * of.out_h + y) * of.out_row();
        kernels().cubic_between(to, between, taps[y].weights, of.out_row(), stream);
      });
}

}  // namespace latentkit
