#include "resample.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "engine.h"
#include "runtime/dispatch.h"
#include "runtime/parallel.h"
#include "runtime/scratch.h"
#include "runtime/spans.h"
#include "shared/checks.h"
#include "shared/taps.h"

namespace latentkit {
namespace {

/* Kernels read taps in whole vectors: this many past the last may be read. */
constexpr size_t kPadding = 16;

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

/* Rows of one or several resized planes, or of images whose colours lie side by side. */
struct Resize {
  size_t in_h, in_w, out_h, out_w, colours;
  Taps rows{in_h, out_h, 1}, columns{in_w, out_w, colours};

  size_t in_row() const { return in_w * colours; }
  size_t out_row() const { return out_w * colours; }
};

/* The two input rows that are nearest to one of the output, as long as that, and what they weigh. */
struct Pair {
  const float *top, *bottom;
  float top_weight, bottom_weight;
};

/* An enlarged picture needs each of its rows many times: two of them stay resized across. */
class Rows {
 public:
  /* Floats of memory that `rows` must have. */
  static size_t room(const Resize &of) { return 2 * (of.out_row() + kPadding); }

  Rows(const Resize &of, float *rows) : of_(of), rows_(rows) {}

  Pair around(const float *plane, size_t y) {
    const float *first = plane + static_cast<size_t>(of_.rows.first[y]) * of_.in_row();
    const float *second = plane + static_cast<size_t>(of_.rows.second[y]) * of_.in_row();
    const float *top = across(first, second), *bottom = across(second, first);
    return {top, bottom, of_.rows.first_weight[y], of_.rows.second_weight[y]};
  }

 private:
  const float *across(const float *row, const float *other) {
    const size_t slot = sources_[0] == row || (sources_[1] != row && sources_[0] != other) ? 0 : 1;
    float *resized = rows_ + slot * (of_.out_row() + kPadding);
    if (sources_[slot] != row) {
      const Taps &taps = of_.columns;
      kernels().resize_across(resized, row, of_.in_row(), taps.first.data(), taps.second.data(),
                              taps.first_weight.data(), taps.second_weight.data(), of_.out_row());
      sources_[slot] = row;
    }
    return resized;
  }

  const Resize &of_;
  float *rows_;
  const float *sources_[2] = {nullptr, nullptr};
};

/* Makes the rows of `planes` resized ones; `between` is the kernel for what lies between two rows. */
template <class T>
void resize_rows(T *out, const float *x, size_t planes, const Resize &of,
                 void (*between)(T *, const float *, const float *, float, float, size_t)) {
  const size_t total = planes * of.out_h, width = of.out_row(), room = Rows::room(of);
  const size_t rows_per_block = total * width <= ENGINE_PARALLEL_MIN ? total : width >= kGrain ? 1 : kGrain / width;
  const size_t blocks = (total + rows_per_block - 1) / rows_per_block;
  const size_t workers = std::min(blocks, static_cast<size_t>(engine_threads()));
  // bodies must not throw, so all of them get their memory here; each goes from block to block with its own, still warm
  const Scratch memory = scratch(workers * room * sizeof(float));
  std::atomic<size_t> next{0};
  for_chunks(workers, [&](size_t worker) {
    Rows rows(of, reinterpret_cast<float *>(memory.get()) + worker * room);
    for (size_t block; (block = next.fetch_add(1, std::memory_order_relaxed)) < blocks;) {
      const size_t end = std::min(total, (block + 1) * rows_per_block);
      for (size_t row = block * rows_per_block; row < end; row++) {
        const auto [top, bottom, top_weight, bottom_weight] =
            rows.around(x + row / of.out_h * of.in_h * of.in_row(), row % of.out_h);
        between(out + row * width, top, bottom, top_weight, bottom_weight, width);
      }
    }
  });
}

/* Planes x [batch, 3, plane] with their colours side by side: the fewer values are moved before they are many. */
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

/* Both ways to end a picture's resize. */
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
    const Resize of = {in_h, in_w, out_h, out_w, 3};
    resize_rows(out.data, reinterpret_cast<const float *>(small.get()), batch, of, between);
    return ENGINE_OK;
  });
}

}  // namespace

void resize_planes(float *out, const float *x, size_t planes, size_t in_h, size_t in_w, size_t out_h, size_t out_w) {
  resize_rows(out, x, planes, {in_h, in_w, out_h, out_w, 1}, kernels().resize_between);
}

}  // namespace latentkit

engine_status engine_resize_bilinear(engine_f32 out, engine_cf32 x, size_t planes, size_t in_h, size_t in_w,
                                     size_t out_h, size_t out_w) {
  using namespace latentkit;
  bool nothing = false;
  const engine_status status = check_resize(out.len, x.len, planes, in_h, in_w, out_h, out_w, &nothing);
  if (status != ENGINE_OK || nothing) return status;
  return guarded([&] {
    resize_planes(out.data, x.data, planes, in_h, in_w, out_h, out_w);
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
