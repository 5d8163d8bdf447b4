#include "resize.h"

#include <cstdint>

#include "runtime/spans.h"
#include "shared/checks.h"

namespace latentkit {
namespace {

constexpr const char *kNames[ENGINE_RESIZE_METHOD_COUNT] = {"nearest-exact", "bilinear", "bicubic",
                                                            "area",          "bislerp",  "lanczos"};

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
  return options.method == ENGINE_LANCZOS && !has_bytes ? ENGINE_BAD_ARGUMENT : ENGINE_OK;
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
      default: resize_lanczos(out.data, x.data, of); break;
    }
    return ENGINE_OK;
  });
}
