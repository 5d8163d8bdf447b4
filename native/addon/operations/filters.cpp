// Filters of pictures.
#include <iterator>

#include "args.h"
#include "operations.h"

namespace latentkit {
namespace {

// in the order of engine_blend_mode
const char *const kModes[] = {"normal", "multiply", "screen", "overlay", "soft_light", "difference"};

Napi::Value ConvolveImage(const Napi::CallbackInfo &info) {
  const Args a(info);
  const size_t batch = a.size(2, "batch"), height = a.size(3, "height"), width = a.size(4, "width");
  const size_t channels = a.size(5, "channels");
  const engine_f32 out = a.out(0, "out");
  const engine_cf32 x = a.in(1, "x", out.len), weights = a.in(6, "weights");
  a.expect("out", out.len, {batch, height, width, channels});
  a.apart(out, x, "x", false);
  a.apart(out, weights, "weights", false);
  return a.done(engine_convolve_image(out, x, batch, height, width, channels, weights));
}

Napi::Value BlendImages(const Napi::CallbackInfo &info) {
  const Args args(info);
  const std::string name = args.text(3, "mode");
  const double factor = args.number(4, "factor");
  size_t mode = 0;
  while (mode < std::size(kModes) && name != kModes[mode]) mode++;
  if (mode == std::size(kModes)) args.range_error("mode", "the name of a blend mode", "\"" + name + "\"");
  const engine_f32 out = args.out(0, "out");
  const engine_cf32 a = args.in(1, "a", out.len), b = args.in(2, "b", out.len);
  args.apart(out, a, "a", true);
  args.apart(out, b, "b", true);
  return args.done(engine_blend_images(out, a, b, static_cast<engine_blend_mode>(mode), factor));
}

Napi::Value ClampToUnit(const Napi::CallbackInfo &info) {
  engine_clamp_to_unit(Args(info).out(0, "x"));
  return info.Env().Undefined();
}

Napi::Value ExtremesAlong(const Napi::CallbackInfo &info) {
  const Args a(info);
  size_t lines[3];
  a.sizes(a.at(2), "lines", lines, 3);
  const size_t before = a.size(3, "before"), after = a.size(4, "after");
  const bool least = a.boolean(5, "least"), more = a.boolean(6, "more");
  const engine_f32 out = a.out(0, "out");
  const engine_cf32 x = a.in(1, "x", out.len);
  a.expect("out", out.len, {lines[0], lines[1], lines[2]});
  a.apart(out, x, "x", false);
  return a.done(engine_extremes_along(out, x, lines[0], lines[1], lines[2], before, after, least, more));
}

}  // namespace

void ExportFilters(const Exports &exports) {
  SetAll(exports.core, {{"convolveImage", ConvolveImage},
                        {"blendImages", BlendImages},
                        {"clampToUnit", ClampToUnit},
                        {"extremesAlong", ExtremesAlong}});
}

}  // namespace latentkit
