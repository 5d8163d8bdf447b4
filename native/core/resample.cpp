#include "resample.h"

#include <cstdint>
#include <vector>

#include "dispatch.h"
#include "engine.h"
#include "parallel.h"
#include "spans.h"

namespace latentkit {
namespace {

/* Kernels read taps in whole vectors: this many past the last may be read. */
constexpr size_t kPadding = 16;

/*
 * For each output position the two input positions and their weights. The source position is PyTorch's
 * scale * (i + 0.5) - 0.5 in float32 with a fused multiply-add; the product of two floats is exact in double.
 */
struct Taps {
  std::vector<int32_t> first, second;
  std::vector<float> first_weight, second_weight;

  Taps(size_t in, size_t out)
      : first(out + kPadding), second(out + kPadding), first_weight(out + kPadding), second_weight(out + kPadding) {
    float ratio = static_cast<float>(in) / static_cast<float>(out);
    for (size_t i = 0; i < out; i++) {
      double product = static_cast<double>(ratio) * static_cast<double>(static_cast<float>(i) + 0.5f);
      float at = static_cast<float>(product - 0.5);
      if (at < 0.0f) at = 0.0f;
      size_t low = static_cast<size_t>(at);
      if (low > in - 1) low = in - 1;
      float fraction = at - static_cast<float>(low);
      // far beyond 2^24 positions a float steps over pixels
      if (fraction > 1.0f) fraction = 1.0f;
      first[i] = static_cast<int32_t>(low);
      second[i] = static_cast<int32_t>(low + (low < in - 1 ? 1 : 0));
      first_weight[i] = 1.0f - fraction;
      second_weight[i] = fraction;
    }
  }
};

}  // namespace

void resize_planes(float *out, const float *x, size_t planes, size_t in_h, size_t in_w, size_t out_h, size_t out_w) {
  Taps rows(in_h, out_h), columns(in_w, out_w);
  const size_t width = out_w + kPadding;
  auto body = [&](size_t begin, size_t end, float *kept) {
    // an enlarged picture needs each row many times: two of them stay resized across
    const float *known[2] = {nullptr, nullptr};
    const auto across = [&](const float *row, const float *other) {
      const size_t slot = known[0] == row || (known[1] != row && known[0] != other) ? 0 : 1;
      float *made = kept + slot * width;
      if (known[slot] != row) {
        kernels().resize_across(made, row, columns.first.data(), columns.second.data(), columns.first_weight.data(),
                                columns.second_weight.data(), out_w);
        known[slot] = row;
      }
      return made;
    };
    for (size_t row = begin; row < end; row++) {
      size_t y = row % out_h;
      const float *plane = x + row / out_h * in_h * in_w;
      const float *first = plane + static_cast<size_t>(rows.first[y]) * in_w;
      const float *second = plane + static_cast<size_t>(rows.second[y]) * in_w;
      const float *top = across(first, second), *bottom = across(second, first);
      kernels().resize_between(out + row * out_w, top, bottom, rows.first_weight[y], rows.second_weight[y], out_w);
    }
  };
  size_t total = planes * out_h;
  size_t rows_per_chunk = total * out_w <= ENGINE_PARALLEL_MIN ? total : out_w >= kGrain ? 1 : kGrain / out_w;
  size_t chunks = (total + rows_per_chunk - 1) / rows_per_chunk;
  // bodies must not throw, so all of them get their rows here
  std::vector<float> kept(chunks * 2 * width);
  for_chunks(chunks, [&](size_t chunk) {
    size_t begin = chunk * rows_per_chunk;
    size_t end = total - begin < rows_per_chunk ? total : begin + rows_per_chunk;
    body(begin, end, kept.data() + chunk * 2 * width);
  });
}

}  // namespace latentkit

engine_status engine_resize_bilinear(engine_f32 out, engine_cf32 x, size_t planes, size_t in_h, size_t in_w,
                                     size_t out_h, size_t out_w) {
  using namespace latentkit;
  size_t in_count, out_count;
  if (!elements({1, planes, in_h, in_w}, &in_count) || !elements({1, planes, out_h, out_w}, &out_count)) {
    return ENGINE_BAD_LENGTH;
  }
  if (x.len != in_count || out.len != out_count) return ENGINE_BAD_LENGTH;
  if (out_count == 0) return ENGINE_OK;
  if (in_count == 0) return ENGINE_BAD_LENGTH;
  if (in_h > INT32_MAX || in_w > INT32_MAX || out_h > INT32_MAX || out_w > INT32_MAX) return ENGINE_BAD_ARGUMENT;
  return guarded([&] {
    resize_planes(out.data, x.data, planes, in_h, in_w, out_h, out_w);
    return ENGINE_OK;
  });
}
