// Lanczos of bytes as Pillow resizes them: fixed point, across first, then down, clipped to bytes in between.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "lk_libm.h"
#include "resize/resize.h"
#include "runtime/runtime.h"

namespace latentkit {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kLobes = 3.0;
constexpr double kOne = 1 << 22; /* the fixed point's */

double sinc(double x) { return x == 0.0 ? 1.0 : lk_sin(x * kPi) / (x * kPi); }

double lanczos(double x) { return x >= -kLobes && x < kLobes ? sinc(x) * sinc(x / kLobes) : 0.0; }

/* For each output position where its window begins, how wide it is, and its weights as the kernel takes them. */
struct Windows {
  struct Window {
    size_t first, taps;
  };
  std::vector<Window> windows;
  std::vector<uint32_t> weights;
  size_t stride; /* of the weights of one window */

  Windows(size_t in, size_t out) {
    const double scale = static_cast<double>(in) / static_cast<double>(out), wide = std::max(scale, 1.0);
    const double reach = kLobes * wide;
    const size_t most = static_cast<size_t>(std::ceil(reach)) * 2 + 1;
    stride = (most + 1) / 2 * 2;
    weights.resize(out * stride);
    windows.resize(out);
    std::vector<double> shares(most);
    for (size_t i = 0; i < out; i++) {
      const double middle = (static_cast<double>(i) + 0.5) * scale;
      const auto first = static_cast<size_t>(std::max(middle - reach + 0.5, 0.0));
      const size_t taps = std::min(static_cast<size_t>(middle + reach + 0.5), in) - first;
      double total = 0.0;
      for (size_t k = 0; k < taps; k++) {
        shares[k] = lanczos((static_cast<double>(k + first) - middle + 0.5) * (1.0 / wide));
        total += shares[k];
      }
      windows[i] = {first, taps};
      for (size_t k = 0; k < taps; k++) put(weights.data() + i * stride, k, total == 0.0 ? 0.0 : shares[k] / total);
    }
  }

  const uint32_t *of(size_t i) const { return weights.data() + i * stride; }

 private:
  static void put(uint32_t *pairs, size_t k, double share) {
    const auto weight = static_cast<int32_t>(share < 0.0 ? share * kOne - 0.5 : share * kOne + 0.5);
    uint32_t *pair = pairs + k / 2 * 2;
    const uint32_t shift = k % 2 * 16;
    pair[0] |= (static_cast<uint32_t>(weight) & 0x7fff) << shift;
    pair[1] |= (static_cast<uint32_t>(weight >> 15) & 0xffff) << shift;
  }
};

/* a * b / 255, rounded. */
uint8_t product(uint8_t a, uint8_t b) {
  const uint32_t scaled = static_cast<uint32_t>(a) * b + 128;
  return static_cast<uint8_t>(((scaled >> 8) + scaled) >> 8);
}

bool has_alpha(const Pictures &of) { return of.channels % 2 == 0; }

/* Multiplies the last of the channels into the others. */
void premultiply(uint8_t *pixels, size_t n, size_t channels) {
  for (uint8_t *p = pixels; p < pixels + n; p += channels) {
    for (size_t c = 0; c + 1 < channels; c++) p[c] = product(p[c], p[channels - 1]);
  }
}

/* Divides the others by the last, rounded down; if that is 0 they stay. */
void unmultiply(uint8_t *pixels, size_t n, size_t channels) {
  for (uint8_t *p = pixels; p < pixels + n; p += channels) {
    const uint32_t alpha = p[channels - 1];
    if (alpha == 0 || alpha == 255) continue;
    for (size_t c = 0; c + 1 < channels; c++) p[c] = static_cast<uint8_t>(std::min(255u * p[c] / alpha, 255u));
  }
}

/* Rows that are turned and resized together, so that a column of them is a vector. */
constexpr size_t kStrip = 64;
constexpr size_t kStripBytes = size_t{64} << 20;

/* Very long rows are resized one by one: the memory of a strip is bounded. */
size_t strip_of(const Pictures &of) { return of.in_h > 1 && of.in_row() <= kStripBytes / kStrip ? kStrip : 1; }

/* The first pass: rows of floats to bytes, as wide as the output. */
class Across {
 public:
  explicit Across(const Pictures &of) : of_(of), strip_(strip_of(of)), windows_(of.in_w, of.out_w) {}

  void run(uint8_t *out, const float *x) const {
    const size_t width = std::max(of_.in_row(), of_.out_row());
    const size_t strips = (of_.in_h + strip_ - 1) / strip_;
    for_workers(strips, 2 * strip_ * width, [&](uint8_t *memory, auto &&take) {
      for (size_t i; take(&i);) {
        const size_t first = i * strip_, rows = std::min(strip_, of_.in_h - first);
        uint8_t *to = out + first * of_.out_row();
        bytes(of_.in_w == of_.out_w ? to : memory, x + first * of_.in_row(), rows);
        if (of_.in_w == of_.out_w) continue;
        if (strip_ == 1) windows(to, memory);
        else turned(to, memory, memory + strip_ * width, rows);
      }
    });
  }

 private:
  void bytes(uint8_t *out, const float *x, size_t rows) const {
    const size_t n = rows * of_.in_row();
    kernels().to_bytes(out, x, n, 0);
    if (has_alpha(of_)) premultiply(out, n, of_.channels);
  }

  void windows(uint8_t *out, const uint8_t *columns) const {
    const size_t each = of_.channels * strip_;
    for (size_t i = 0; i < of_.out_w; i++) {
      const auto [first, taps] = windows_.windows[i];
      kernels().weigh_bytes(out + i * each, columns + first * each, each, windows_.of(i), taps, each);
    }
  }

  /* `memory` holds the rows and is written over; the columns are as long even if there are fewer rows. */
  void turned(uint8_t *out, uint8_t *memory, uint8_t *columns, size_t rows) const {
    if (rows < strip_) std::memset(columns, 0, of_.in_row() * strip_);
    kernels().transpose_bytes(columns, strip_, memory, of_.in_row(), rows, of_.in_row());
    windows(memory, columns);
    kernels().transpose_bytes(out, of_.out_row(), memory, strip_, of_.out_row(), rows);
  }

  const Pictures &of_;
  size_t strip_;
  Windows windows_;
};

/* The second pass: each row of the output, of bytes as wide as it, to floats. */
class Down {
 public:
  explicit Down(const Pictures &of) : of_(of), windows_(of.in_h, of.out_h) {}

  void run(float *out, const uint8_t *x) const {
    const size_t width = of_.out_row(), rows = kGrain / width + 1;
    const size_t blocks = (of_.out_h + rows - 1) / rows;
    const int stream = streams(of_.out_h * width);
    for_workers(blocks, width, [&](uint8_t *memory, auto &&take) {
      for (size_t block; take(&block);) {
        const size_t end = std::min(of_.out_h, (block + 1) * rows);
        for (size_t y = block * rows; y < end; y++) {
          weigh(memory, x, y);
          kernels().from_bytes(out + y * width, memory, width, stream);
        }
      }
    });
  }

 private:
  void weigh(uint8_t *out, const uint8_t *x, size_t y) const {
    const size_t width = of_.out_row();
    if (of_.in_h == of_.out_h) {
      std::copy_n(x + y * width, width, out);
    } else {
      const auto [first, taps] = windows_.windows[y];
      kernels().weigh_bytes(out, x + first * width, width, windows_.of(y), taps, width);
    }
    if (has_alpha(of_)) unmultiply(out, width, of_.channels);
  }

  const Pictures &of_;
  Windows windows_;
};

/* Equal sizes: bytes and back, nothing multiplied. */
void through_bytes(float *out, const float *x, size_t n) {
  for_workers((n + kGrain - 1) / kGrain, kGrain, [&](uint8_t *bytes, auto &&take) {
    for (size_t block; take(&block);) {
      const size_t from = block * kGrain, count = std::min(kGrain, n - from);
      kernels().to_bytes(bytes, x + from, count, 0);
      kernels().from_bytes(out + from, bytes, count, streams(n));
    }
  });
}

}  // namespace

void resize_lanczos(float *out, const float *x, const Pictures &of) {
  if (of.in_h == of.out_h && of.in_w == of.out_w) return through_bytes(out, x, of.count * of.in_picture());
  const Across across(of);
  const Down down(of);
  // one picture after the other, so that the bytes between both passes are those of one
  const Scratch wide = scratch(of.in_h * of.out_row());
  for (size_t i = 0; i < of.count; i++) {
    across.run(wide.get(), x + i * of.in_picture());
    down.run(out + i * of.out_h * of.out_row(), wide.get());
  }
}

}  // namespace latentkit
