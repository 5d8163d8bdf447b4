// Pixels, text and frames of PNG files.
#include <cstring>
#include <utility>

#include "operations.h"
#include "worker.h"

namespace latentkit {
namespace {

/* Width, height, channels and bit depth. */
Napi::Object SidesOf(Napi::Env env, const engine_png_info &info) {
  Napi::Object result = Napi::Object::New(env);
  result.Set("width", Napi::Number::New(env, info.width));
  result.Set("height", Napi::Number::New(env, info.height));
  result.Set("channels", Napi::Number::New(env, info.channels));
  result.Set("bitDepth", Napi::Number::New(env, info.bit_depth));
  return result;
}

/* With the length of all samples in bytes. */
Napi::Object FramesOf(Napi::Env env, const engine_png_info &info) {
  Napi::Object result = SidesOf(env, info);
  result.Set("frames", Napi::Number::New(env, info.frames));
  result.Set("isKeyed", Napi::Boolean::New(env, info.is_keyed != 0));
  result.Set("byteLength", Napi::Number::New(env, static_cast<double>(info.bytes)));
  return result;
}

class DecodeJob final : public Job {
 public:
  DecodeJob(Bytes file, uint64_t max_pixels) : file_(std::move(file)), max_pixels_(max_pixels), pixels_(0), text_(0) {}
  const char *Name() const override { return "decodePng"; }

  engine_status Work(const char **reason) override {
    const engine_cu8 file{file_.data.get(), file_.len};
    engine_status status = engine_png_inspect(file, max_pixels_, &info_, reason);
    if (status != ENGINE_OK) return status;
    pixels_ = Bytes(info_.bytes);
    status = engine_png_decode({pixels_.data.get(), pixels_.len}, file, max_pixels_, reason);
    if (status != ENGINE_OK) return status;
    text_ = Bytes(info_.text_bytes);
    return engine_png_text({text_.data.get(), text_.len}, file, &text_written_, reason);
  }

  Napi::Value Result(Napi::Env env) override {
    Napi::Object result = SidesOf(env, info_);
    const Napi::ArrayBuffer buffer = CopyOut(env, pixels_.data.get(), pixels_.len);
    if (info_.bit_depth == 16) result.Set("data", Napi::Uint16Array::New(env, pixels_.len / 2, buffer, 0));
    else result.Set("data", Napi::Uint8Array::New(env, pixels_.len, buffer, 0));
    result.Set("text", TextList(env));
    return result;
  }

 private:
  Napi::Value TextList(Napi::Env env) const {
    Napi::Array list = Napi::Array::New(env);
    const char *at = reinterpret_cast<const char *>(text_.data.get());
    const char *const end = at + text_written_;
    const auto next = [&] {
      const size_t len = strnlen(at, static_cast<size_t>(end - at));
      const Napi::String text = Napi::String::New(env, at, len);
      at += len + 1;
      return text;
    };
    while (at < end) {
      Napi::Array pair = Napi::Array::New(env, 2);
      pair.Set(0u, next());
      pair.Set(1u, next());
      list.Set(list.Length(), pair);
    }
    return list;
  }

  Bytes file_;
  uint64_t max_pixels_;
  engine_png_info info_{};
  Bytes pixels_, text_;
  size_t text_written_ = 0;
};

class DecodeFramesJob final : public Job {
 public:
  DecodeFramesJob(Bytes file, uint64_t max_pixels, uint32_t most)
      : file_(std::move(file)), max_pixels_(max_pixels), most_(most), pixels_(0) {}
  const char *Name() const override { return "decodePngFrames"; }

  engine_status Work(const char **reason) override {
    const engine_cu8 file{file_.data.get(), file_.len};
    const engine_status status = engine_png_inspect_frames(file, max_pixels_, most_, &info_, reason);
    if (status != ENGINE_OK) return status;
    pixels_ = Bytes(info_.bytes);
    return engine_png_decode_frames({pixels_.data.get(), pixels_.len}, file, max_pixels_, most_, reason);
  }

  Napi::Value Result(Napi::Env env) override {
    Napi::Object result = FramesOf(env, info_);
    const auto release = [](Napi::Env, Bytes *samples) { delete samples; };
    result.Set("samples", Napi::External<Bytes>::New(env, new Bytes(std::move(pixels_)), release));
    return result;
  }

 private:
  Bytes file_;
  uint64_t max_pixels_;
  uint32_t most_;
  engine_png_info info_{};
  Bytes pixels_;
};

Bytes CopyFile(const Args &a) {
  const engine_cu8 file = a.bytes_in(0, "bytes");
  Bytes copy(file.len);
  if (file.len > 0) std::memcpy(copy.data.get(), file.data, file.len);
  return copy;
}

uint64_t MaxPixels(const Args &a, size_t i) { return a.size(i, "maxPixels"); }
uint32_t Most(const Args &a, size_t i) { return static_cast<uint32_t>(a.integer(i, "most", 1, UINT32_MAX)); }

Napi::Value DecodePng(const Napi::CallbackInfo &info) {
  const Args a(info);
  const uint64_t max_pixels = MaxPixels(a, 1);
  return Submit(info.Env(), std::make_unique<DecodeJob>(CopyFile(a), max_pixels));
}

Napi::Value DecodePngFrames(const Napi::CallbackInfo &info) {
  const Args a(info);
  const uint64_t max_pixels = MaxPixels(a, 1);
  const uint32_t most = Most(a, 2);
  return Submit(info.Env(), std::make_unique<DecodeFramesJob>(CopyFile(a), max_pixels, most));
}

/* Sides, frames and length of what decodePngFramesHere would write. */
Napi::Value InspectPngFrames(const Napi::CallbackInfo &info) {
  const Args a(info);
  const engine_cu8 file = a.bytes_in(0, "bytes");
  const uint64_t max_pixels = MaxPixels(a, 1);
  const uint32_t most = Most(a, 2);
  engine_png_info png{};
  const char *reason = nullptr;
  const engine_status status = engine_png_inspect_frames(file, max_pixels, most, &png, &reason);
  a.done(status, reason);
  return FramesOf(info.Env(), png);
}

Napi::Value DecodePngFramesHere(const Napi::CallbackInfo &info) {
  const Args a(info);
  const engine_u8 out = a.bytes_out(0, "out");
  const engine_cu8 file = a.bytes_in(1, "bytes");
  const uint64_t max_pixels = MaxPixels(a, 2);
  const uint32_t most = Most(a, 3);
  a.apart(out.data, out.len, file.data, file.len, "bytes", false);
  const char *reason = nullptr;
  const engine_status status = engine_png_decode_frames(out, file, max_pixels, most, &reason);
  return a.done(status, reason);
}

/* Copies samples of decodePngFrames into a buffer of their length and frees them; they can be taken once. */
Napi::Value TakeSamples(const Napi::CallbackInfo &info) {
  const Args a(info);
  const Napi::Value held = a.at(0);
  if (!held.IsExternal())
    throw Napi::TypeError::New(info.Env(), "takeSamples: samples must be those of decodePngFrames");
  Bytes &samples = *held.As<Napi::External<Bytes>>().Data();
  const engine_u8 out = a.bytes_out(1, "out");
  a.expect("out", out.len, {samples.len});
  if (samples.len > 0) std::memcpy(out.data, samples.data.get(), samples.len);
  samples = Bytes(0);
  return info.Env().Undefined();
}

}  // namespace

void ExportPngDecode(const Exports &exports) {
  SetAll(exports.core, {{"decodePng", DecodePng},
                        {"decodePngFrames", DecodePngFrames},
                        {"takeSamples", TakeSamples},
                        {"inspectPngFrames", InspectPngFrames},
                        {"decodePngFramesHere", DecodePngFramesHere}});
}

}  // namespace latentkit
