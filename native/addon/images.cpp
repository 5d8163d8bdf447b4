#include "args.h"
#include "operations.h"

namespace latentkit {

Napi::Value ChannelToMask(const Napi::CallbackInfo &info) {
  const Args a(info, "channelToMask");
  const engine_f32 out = a.out(0, "out");
  const engine_cf32 image = a.in(1, "image");
  const int64_t channels = a.integer(2, "channels", 1, 4);
  a.expect("image", image.len, {out.len, static_cast<size_t>(channels)});
  a.apart(out, image, "image", false);
  const int64_t channel = a.integer(3, "channel", 0, 2);
  return a.done(engine_channel_to_mask(out, image, static_cast<int>(channels), static_cast<int>(channel)));
}

Napi::Value PlanesToImage(const Napi::CallbackInfo &info) {
  const Args a(info, "planesToImage");
  const engine_f32 out = a.out(0, "out");
  const engine_cf32 x = a.in(1, "x", out.len);
  a.apart(out, x, "x", false);
  return a.done(engine_planes_to_image(out, x, static_cast<size_t>(a.integer(2, "batch", 0, Args::kMaxSize))));
}

Napi::Value FloatToByte(const Napi::CallbackInfo &info) {
  const Args a(info, "floatToByte");
  const engine_u8 out = a.bytes_out(0, "out");
  const engine_cf32 x = a.in(1, "x", out.len);
  a.apart(out.data, out.len, x.data, x.len * 4, "x", false);
  return a.done(engine_f32_to_u8(out, x));
}

Napi::Value ByteToFloat(const Napi::CallbackInfo &info) {
  const Args a(info, "byteToFloat");
  const engine_f32 out = a.out(0, "out");
  const engine_cu8 x = a.bytes_in(1, "x");
  a.expect("x", x.len, {out.len});
  a.apart(out.data, out.len * 4, x.data, x.len, "x", false);
  return a.done(engine_u8_to_f32(out, x));
}

}  // namespace latentkit
