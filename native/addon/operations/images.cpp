// Images: floats and bytes, masks, latents seen as colours, filters, hashes.
#include <cstdint>
#include <iterator>
#include <memory>

#include "cuda.h"
#include "operations.h"

namespace latentkit {
namespace {

template <class A>
Napi::Value ChannelToMask(const Napi::CallbackInfo &info) {
  const A a(info);
  const engine_f32 out = a.out(0, "out");
  const engine_cf32 image = a.in(1, "image");
  const int64_t channels = a.integer(2, "channels", 1, 4);
  a.expect("image", image.len, {out.len, static_cast<size_t>(channels)});
  a.apart(out, image, "image", false);
  const int64_t channel = a.integer(3, "channel", 0, 2);
  return a.done(a.run(engine_channel_to_mask, &engine_cuda_table::channel_to_mask, out, image,
                      static_cast<int>(channels), static_cast<int>(channel)));
}

template <class A>
Napi::Value PlanesToImage(const Napi::CallbackInfo &info) {
  const A a(info);
  const engine_f32 out = a.out(0, "out");
  const engine_cf32 x = a.in(1, "x", out.len);
  a.apart(out, x, "x", false);
  const size_t batch = a.size(2, "batch");
  return a.done(a.run(engine_planes_to_image, &engine_cuda_table::planes_to_image, out, x, batch));
}

Napi::Value LatentToRgb(const Napi::CallbackInfo &info) {
  const Args a(info);
  const size_t batch = a.size(2, "batch");
  const double shift = a.number(5, "shift"), scale = a.number(6, "scale");
  const engine_f32 out = a.out(0, "out");
  const engine_cf32 x = a.in(1, "x");
  size_t channels, biases;
  const double *factors = a.doubles_in(3, "factors", 3, &channels), *bias = a.doubles_in(4, "bias", 3, &biases);
  a.expect("bias", 3 * biases, {3});
  const size_t plane = batch == 0 ? 0 : out.len / batch / 3;
  a.expect("out", out.len, {batch, 3, plane});
  a.expect("x", x.len, {batch, channels, plane});
  a.apart(out, x, "x", false);
  return a.done(engine_latent_to_rgb(out, x, batch, channels, factors, bias, shift, scale));
}

template <class Out>
Napi::Value ResizeToPixels(const Args &a, Out out, size_t out_bytes,
                           engine_status (*resize)(Out, engine_cf32, size_t, size_t, size_t, size_t, size_t)) {
  const size_t batch = a.size(2, "batch"), in_h = a.size(3, "inHeight"), in_w = a.size(4, "inWidth");
  const size_t out_h = a.size(5, "outHeight"), out_w = a.size(6, "outWidth");
  const engine_cf32 x = a.in(1, "x");
  a.expect("out", out.len, {batch, out_h, out_w, 3});
  a.expect("x", x.len, {batch, 3, in_h, in_w});
  a.apart(out.data, out_bytes, x.data, x.len * 4, "x", false);
  return a.done(resize(out, x, batch, in_h, in_w, out_h, out_w));
}

Napi::Value ResizeToImage(const Napi::CallbackInfo &info) {
  const Args a(info);
  const engine_f32 out = a.out(0, "out");
  return ResizeToPixels(a, out, out.len * 4, engine_resize_to_image);
}

Napi::Value ResizeToBytes(const Napi::CallbackInfo &info) {
  const Args a(info);
  const engine_u8 out = a.bytes_out(0, "out");
  return ResizeToPixels(a, out, out.len, engine_resize_to_bytes);
}

Napi::Value FloatToUint16(const Napi::CallbackInfo &info) {
  const Args a(info);
  const engine_u8 out = a.bytes_out(0, "out");
  const engine_cf32 x = a.in(1, "x");
  a.expect("out", out.len, {x.len, 2});
  a.apart(out.data, out.len, x.data, x.len * 4, "x", false);
  return a.done(engine_f32_to_u16(out, x));
}

Napi::String HexOf(Napi::Env env, const uint8_t hash[ENGINE_HASH_BYTES]) {
  char text[2 * ENGINE_HASH_BYTES];
  for (size_t i = 0; i < sizeof text; i++) text[i] = "0123456789abcdef"[hash[i / 2] >> (i % 2 == 0 ? 4 : 0) & 15];
  return Napi::String::New(env, text, sizeof text);
}

Napi::Value PixelHash(const Napi::CallbackInfo &info) {
  const Args a(info);
  const auto side = [&a](size_t i, const char *name) {
    return static_cast<uint32_t>(a.integer(i, name, 0, UINT32_MAX));
  };
  const uint32_t width = side(1, "width"), height = side(2, "height");
  const auto channels = static_cast<uint32_t>(a.integer(3, "channels", 1, 4));
  const auto bit_depth = static_cast<uint32_t>(a.bit_depth(4));
  const engine_cu8 samples = a.bytes_in(0, "samples");
  a.expect("samples", samples.len, {height, width, channels * bit_depth / 8});
  uint8_t hash[ENGINE_HASH_BYTES];
  const engine_status status = engine_pixel_hash(hash, samples, width, height, channels, bit_depth);
  if (status != ENGINE_OK) return a.done(status);
  return HexOf(info.Env(), hash);
}

/* A hash of bytes that come in pieces, as an object whose two functions own it. */
Napi::Value Blake3(const Napi::CallbackInfo &info) {
  const Napi::Env env = info.Env();
  const auto hasher = std::make_shared<engine_hasher>();
  engine_hash_init(hasher.get());
  const auto update = [hasher](const Napi::CallbackInfo &call) {
    engine_hash_update(hasher.get(), Args(call).bytes_in(0, "bytes"));
  };
  const auto hex = [hasher](const Napi::CallbackInfo &call) -> Napi::Value {
    uint8_t hash[ENGINE_HASH_BYTES];
    engine_hash_final(hash, hasher.get());
    return HexOf(call.Env(), hash);
  };
  Napi::Object object = Napi::Object::New(env);
  object.Set("update", Napi::Function::New(env, update, "update"));
  object.Set("hex", Napi::Function::New(env, hex, "hex"));
  return object;
}

template <class A>
Napi::Value FloatToByte(const Napi::CallbackInfo &info) {
  const A a(info);
  const engine_u8 out = a.bytes_out(0, "out");
  const engine_cf32 x = a.in(1, "x", out.len);
  a.apart(out.data, out.len, x.data, x.len * 4, "x", false);
  return a.done(a.run(engine_f32_to_u8, &engine_cuda_table::f32_to_u8, out, x));
}

template <class A>
Napi::Value ByteToFloat(const Napi::CallbackInfo &info) {
  const A a(info);
  const engine_f32 out = a.out(0, "out");
  const engine_cu8 x = a.bytes_in(1, "x");
  a.expect("x", x.len, {out.len});
  a.apart(out.data, out.len * 4, x.data, x.len, "x", false);
  return a.done(a.run(engine_u8_to_f32, &engine_cuda_table::u8_to_f32, out, x));
}

template <class A>
constexpr std::initializer_list<Operation> kOperations = {{"channelToMask", ChannelToMask<A>},
                                                          {"planesToImage", PlanesToImage<A>},
                                                          {"floatToByte", FloatToByte<A>},
                                                          {"byteToFloat", ByteToFloat<A>}};

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

void ExportImages(const Exports &exports) {
  SetAll(exports.core, kOperations<Args>);
  SetAll(exports.cuda, kOperations<CudaArgs>);
  SetAll(exports.core, {{"latentToRgb", LatentToRgb},
                        {"resizeToImage", ResizeToImage},
                        {"resizeToBytes", ResizeToBytes},
                        {"floatToUint16", FloatToUint16},
                        {"pixelHash", PixelHash},
                        {"blake3", Blake3},
                        {"convolveImage", ConvolveImage},
                        {"blendImages", BlendImages},
                        {"clampToUnit", ClampToUnit},
                        {"extremesAlong", ExtremesAlong}});
}

}  // namespace latentkit
