// Arithmetic, resizes, blends and injected noise.
#include <type_traits>

#include "cuda.h"
#include "operations.h"

namespace latentkit {
namespace {

template <class A>
Napi::Value Scale(const Napi::CallbackInfo &info) {
  const A a(info);
  const engine_f32 out = a.out(0, "out");
  const engine_cf32 x = a.in(1, "x", out.len);
  a.apart(out, x, "x", true);
  return a.done(a.run(engine_scale, &engine_cuda_table::scale, out, x, a.f32(2, "k")));
}

/* Two inputs, and a number for a function that takes one. */
template <class A, auto kCore, auto kCuda>
Napi::Value Binary(const Napi::CallbackInfo &info) {
  const A a(info);
  const engine_f32 out = a.out(0, "out");
  const engine_cf32 x = a.in(1, "x", out.len), y = a.in(2, "y", out.len);
  a.apart(out, x, "x", true);
  a.apart(out, y, "y", true);
  if constexpr (std::is_invocable_v<decltype(kCore), engine_f32, engine_cf32, engine_cf32, float>)
    return a.done(a.run(kCore, kCuda, out, x, y, a.f32(3, "k")));
  else return a.done(a.run(kCore, kCuda, out, x, y));
}

/* out, which may hold the sum several times and begin with an operand, then up to ENGINE_MAX_TERMS pairs of a
 * coefficient and an operand: lists would cost more than a small sum. */
template <class A>
Napi::Value WeightedSum(const Napi::CallbackInfo &info) {
  const A a(info);
  const engine_f32 out = a.out(0, "out");
  const size_t count = info.Length() / 2;
  if (count == 0 || count > ENGINE_MAX_TERMS || info.Length() % 2 == 0)
    a.range_error("terms", "1 to 8 coefficients, each with its values",
                  std::to_string(info.Length() - 1) + " arguments");
  double coefficients[ENGINE_MAX_TERMS];
  engine_cf32 x[ENGINE_MAX_TERMS];
  for (size_t k = 0; k < count; k++) {
    coefficients[k] = a.number(2 * k + 1, "coefficient");
    x[k] = k == 0 ? a.in(2, "x") : a.in(2 * k + 2, "x", x[0].len);
    if (x[k].data != out.data) a.apart(out, x[k], "x", false);
  }
  if (x[0].len == 0 ? out.len != 0 : out.len == 0 || out.len % x[0].len != 0)
    a.range_error("out", "a multiple of " + std::to_string(x[0].len) + " elements", std::to_string(out.len));
  const engine_cf32 *operands = x;
  const double *factors = coefficients;
  return a.done(a.run(engine_weighted_sum, &engine_cuda_table::weighted_sum, out, operands, factors, count));
}

template <class A>
Napi::Value Std(const Napi::CallbackInfo &info) {
  const A a(info);
  float deviation = 0;
  a.done(a.run(engine_std, &engine_cuda_table::std, a.in(0, "x"), &deviation));
  return Napi::Number::New(info.Env(), deviation);
}

template <class A>
Napi::Value StdOfItems(const Napi::CallbackInfo &info) {
  const A a(info);
  const engine_f32 out = a.Args::out(0, "out");
  const engine_cf32 x = a.in(1, "x");
  if (out.len == 0 || x.len % out.len != 0)
    a.range_error("out", "a number of items that divides " + std::to_string(x.len), std::to_string(out.len));
  return a.done(a.run(engine_std_items, &engine_cuda_table::std_items, out, x));
}

template <class A>
Napi::Value ScaledError(const Napi::CallbackInfo &info) {
  const A a(info);
  const double atol = a.number(3, "atol"), rtol = a.number(4, "rtol");
  const engine_cf32 low = a.in(0, "low"), high = a.in(1, "high", low.len), previous = a.in(2, "previous", low.len);
  double norm = 0;
  a.done(a.run(engine_scaled_error, &engine_cuda_table::scaled_error, low, high, previous, atol, rtol, &norm));
  return Napi::Number::New(info.Env(), norm);
}

template <class A>
Napi::Value ResizeBilinear(const Napi::CallbackInfo &info) {
  const A a(info);
  const size_t planes = a.size(2, "planes"), in_h = a.size(3, "inHeight"), in_w = a.size(4, "inWidth");
  const size_t out_h = a.size(5, "outHeight"), out_w = a.size(6, "outWidth");
  const engine_f32 out = a.out(0, "out");
  const engine_cf32 x = a.in(1, "x");
  a.expect("out", out.len, {planes, out_h, out_w});
  a.expect("x", x.len, {planes, in_h, in_w});
  a.apart(out, x, "x", false);
  return a.done(
      a.run(engine_resize_bilinear, &engine_cuda_table::resize_bilinear, out, x, planes, in_h, in_w, out_h, out_w));
}

engine_resize_method ReadResizeMethod(const Args &a, size_t i) {
  const std::string name = a.text(i, "method");
  for (int k = 0; engine_resize_method_name(k) != nullptr; k++)
    if (name == engine_resize_method_name(k)) return static_cast<engine_resize_method>(k);
  a.range_error("method", "the name of a method", "\"" + name + "\"");
}

Napi::Value Resize(const Napi::CallbackInfo &info) {
  const Args a(info);
  const engine_resize_method method = ReadResizeMethod(a, 2);
  const bool pixels = a.boolean(3, "pixels");
  size_t s[5];
  a.sizes(a.at(4), "shape", s, 5);
  const size_t out_h = a.size(5, "outHeight"), out_w = a.size(6, "outWidth");
  const engine_f32 out = a.out(0, "out");
  const engine_cf32 x = a.in(1, "x");
  a.expect("out", out.len, {s[0], s[1], s[2], out_h, out_w});
  a.expect("x", x.len, {s[0], s[1], s[2], s[3], s[4]});
  a.apart(out, x, "x", false);
  const engine_resize_options options{method, pixels, s[0], s[1], s[2], s[3], s[4], out_h, out_w};
  return a.done(engine_resize(out, x, &options));
}

Napi::Value ResizeAntialiased(const Napi::CallbackInfo &info) {
  const Args a(info);
  size_t s[4], part[4];
  a.sizes(a.at(2), "shape", s, 4);
  const size_t height = a.size(3, "height"), width = a.size(4, "width");
  a.sizes(a.at(5), "part", part, 4);
  const engine_f32 out = a.out(0, "out");
  const engine_cf32 x = a.in(1, "x");
  a.expect("out", out.len, {s[0], part[2], part[3], s[3]});
  a.expect("x", x.len, {s[0], s[1], s[2], s[3]});
  a.apart(out, x, "x", false);
  const engine_shape4 shape{s[0], s[3], s[1], s[2]};
  return a.done(engine_resize_antialiased(out, x, shape, height, width, {part[0], part[1], part[2], part[3]}));
}

template <class A>
Napi::Value MaskedBlend(const Napi::CallbackInfo &info) {
  const A a(info);
  const size_t batch = a.size(4, "batch"), channels = a.size(5, "channels"), plane = a.size(6, "plane");
  const size_t mask_batch = a.size(7, "maskBatch");
  const engine_f32 out = a.out(0, "out");
  const engine_cf32 from = a.in(1, "a", out.len), to = a.in(2, "b", out.len), mask = a.in(3, "mask");
  a.expect("out", out.len, {batch, channels, plane});
  a.expect("mask", mask.len, {mask_batch, plane});
  a.apart(out, from, "a", true);
  a.apart(out, to, "b", true);
  a.apart(out, mask, "mask", false);
  return a.done(a.run(engine_masked_blend, &engine_cuda_table::masked_blend, out, from, to, mask, batch, channels,
                      plane, mask_batch));
}

template <class A>
Napi::Value Composite(const Napi::CallbackInfo &info) {
  const A a(info);
  size_t d[4], s[4];
  a.sizes(a.at(1), "shape", d, 4);
  a.sizes(a.at(3), "sourceShape", s, 4);
  const int64_t x = a.integer(4, "x", -Args::kMaxSize, Args::kMaxSize);
  const int64_t y = a.integer(5, "y", -Args::kMaxSize, Args::kMaxSize);
  const size_t mask_batch = a.has(7) ? a.size(7, "maskBatch") : 1;
  const engine_f32 destination = a.out(0, "destination");
  const engine_cf32 source = a.in(2, "source");
  const engine_cf32 mask = a.has(6) ? a.in(6, "mask") : engine_cf32{nullptr, 0};
  a.expect("destination", destination.len, {d[0], d[1], d[2], d[3]});
  a.expect("source", source.len, {s[0], s[1], s[2], s[3]});
  if (a.has(6)) a.expect("mask", mask.len, {mask_batch, s[2], s[3]});
  a.apart(destination, source, "source", false);
  a.apart(destination, mask, "mask", false);
  const engine_shape4 shape{d[0], d[1], d[2], d[3]}, source_shape{s[0], s[1], s[2], s[3]};
  return a.done(a.run(engine_composite, &engine_cuda_table::composite, destination, shape, source, source_shape, x, y,
                      mask, a.has(6) ? mask_batch : size_t{0}));
}

template <class A>
Napi::Value AddMasked(const Napi::CallbackInfo &info) {
  const A a(info);
  size_t d[4], area[4];
  a.sizes(a.at(1), "shape", d, 4);
  a.sizes(a.at(3), "area", area, 4);
  const size_t mask_batch = a.size(5, "maskBatch");
  const engine_f32 destination = a.out(0, "destination");
  const engine_cf32 source = a.in(2, "source"), mask = a.in(4, "mask");
  a.expect("destination", destination.len, {d[0], d[1], d[2], d[3]});
  a.expect("source", source.len, {d[0], d[1], area[2], area[3]});
  a.expect("mask", mask.len, {mask_batch, area[2], area[3]});
  a.apart(destination, source, "source", false);
  a.apart(destination, mask, "mask", false);
  const engine_shape4 shape{d[0], d[1], d[2], d[3]};
  const engine_area where{area[0], area[1], area[2], area[3]};
  return a.done(
      a.run(engine_add_masked, &engine_cuda_table::add_masked, destination, shape, source, where, mask, mask_batch));
}

/* The arguments of philoxRandn as an object. */
engine_cuda_draw ReadDraw(const Args &a, Napi::Value value) {
  const Napi::Object from = a.object(value, "options.drawn");
  const uint64_t seed = a.u64(from.Get("seed"), "options.drawn.seed");
  const uint64_t offset = a.u64(from.Get("offset"), "options.drawn.offset");
  const int64_t threads = a.integer(from.Get("threads"), "options.drawn.threads", 0, UINT32_MAX);
  const double k = a.number(from.Get("k"), "options.drawn.k");
  return {seed, offset, static_cast<uint32_t>(threads), static_cast<float>(k)};
}

template <class A>
Napi::Value InjectNoise(const Napi::CallbackInfo &info) {
  const A a(info);
  const Napi::Object from = a.object(3, "options");
  const Napi::Value shape = from.Get("shape"), mask = from.Get("mask"), mask_shape = from.Get("maskShape");
  const Napi::Value random = from.Get("random");
  engine_inject_options options{};
  options.strength = a.number(from.Get("strength"), "options.strength");
  options.average = a.boolean(from.Get("average"), "options.average");
  options.normalize = a.boolean(from.Get("normalize"), "options.normalize");
  options.mix = a.number(from.Get("mix"), "options.mix");
  constexpr bool kCanDraw = std::is_same_v<A, CudaArgs>;
  [[maybe_unused]] engine_cuda_draw draw{}, *drawn = nullptr;
  if constexpr (kCanDraw) {
    const Napi::Value options_drawn = from.Get("drawn");
    if (!options_drawn.IsUndefined()) draw = ReadDraw(a, options_drawn), drawn = &draw;
  }
  size_t s[4] = {}, m[3] = {};
  if (!mask.IsUndefined()) {
    a.sizes(shape, "options.shape", s, 4);
    a.sizes(mask_shape, "options.maskShape", m, 3);
  }
  const engine_f32 out = a.out(0, "out");
  const engine_cf32 base = a.in(1, "base", out.len), noise = a.in(2, "noise", out.len);
  a.apart(out, base, "base", true);
  a.apart(out, noise, "noise", true);
  if (!mask.IsUndefined()) {
    options.mask = a.in(mask, "options.mask");
    a.expect("out", out.len, {s[0], s[1], s[2], s[3]});
    a.expect("options.mask", options.mask.len, {m[0], m[1], m[2]});
    a.apart(out, options.mask, "options.mask", false);
  }
  if (!random.IsUndefined()) {
    options.random = a.in(random, "options.random");
    a.expect("options.random", options.random.len, {out.len});
    a.apart(out, options.random, "options.random", false);
  }
  options.shape = {s[0], s[1], s[2], s[3]};
  options.mask_n = m[0], options.mask_h = m[1], options.mask_w = m[2];
  if constexpr (kCanDraw)
    return a.done(a.run(nullptr, &engine_cuda_table::inject_noise, out, base, noise, &options, drawn));
  else return a.done(engine_inject_noise(out, base, noise, &options));
}

Napi::Value Fill(const Napi::CallbackInfo &info) {
  const CudaArgs a(info);
  const engine_f32 out = a.out(0, "out");
  const CudaDevice &device = *a.block(a.at(0), "out").device;
  return a.done(device.table->fill(device.device, out, a.f32(1, "value")));
}

Napi::Value ResizedBlend(const Napi::CallbackInfo &info) {
  const CudaArgs a(info);
  size_t s[4], m[3];
  a.sizes(a.at(4), "shape", s, 4);
  a.sizes(a.at(5), "maskShape", m, 3);
  const engine_f32 out = a.out(0, "out");
  const engine_cf32 from = a.in(1, "a", out.len), to = a.in(2, "b", out.len), mask = a.in(3, "mask");
  a.expect("out", out.len, {s[0], s[1], s[2], s[3]});
  a.expect("mask", mask.len, {m[0], m[1], m[2]});
  a.apart(out, from, "a", true);
  a.apart(out, to, "b", true);
  a.apart(out, mask, "mask", false);
  const CudaDevice &device = *a.block(a.at(0), "out").device;
  const engine_shape4 shape{s[0], s[1], s[2], s[3]};
  return a.done(device.table->resized_blend(device.device, out, from, to, mask, shape, m[0], m[1], m[2]));
}

template <class A>
constexpr std::initializer_list<Operation> kOperations = {
    {"scale", Scale<A>},
    {"axpy", Binary<A, engine_axpy, &engine_cuda_table::axpy>},
    {"average", Binary<A, engine_average, &engine_cuda_table::average>},
    {"lerp", Binary<A, engine_lerp, &engine_cuda_table::lerp>},
    {"weightedSum", WeightedSum<A>},
    {"std", Std<A>},
    {"stdOfItems", StdOfItems<A>},
    {"scaledError", ScaledError<A>},
    {"resizeBilinear", ResizeBilinear<A>},
    {"maskedBlend", MaskedBlend<A>},
    {"composite", Composite<A>},
    {"addMasked", AddMasked<A>},
    {"injectNoise", InjectNoise<A>}};

}  // namespace

void ExportTensors(const Exports &exports) {
  SetAll(exports.core, kOperations<Args>);
  SetAll(exports.cuda, kOperations<CudaArgs>);
  SetAll(exports.core, {{"resize", Resize}, {"resizeAntialiased", ResizeAntialiased}});
  SetAll(exports.cuda, {{"fill", Fill}, {"resizedBlend", ResizedBlend}});
}

}  // namespace latentkit
