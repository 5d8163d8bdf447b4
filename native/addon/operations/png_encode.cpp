// PNG files from pixels and from filtered rows, and rows filtered on a CUDA device.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "cuda.h"
#include "operations.h"
#include "worker.h"

namespace latentkit {
namespace {

std::string Latin1(const Args &a, Napi::Value value, const std::string &name) {
  if (!value.IsString()) a.type_error(name.c_str(), "a string", value);
  const std::u16string wide = value.As<Napi::String>().Utf16Value();
  std::string narrow;
  narrow.reserve(wide.size());
  for (const char16_t unit : wide) {
    if (unit == 0 || unit > 0xFF) a.range_error(name.c_str(), "Latin-1 text without NUL", "another character");
    narrow.push_back(static_cast<char>(unit));
  }
  return narrow;
}

using Texts = std::vector<std::pair<std::string, std::string>>;

Texts ReadTexts(const Args &a, size_t i) {
  if (!a.at(i).IsArray()) a.type_error("text", "a list of pairs", a.at(i));
  const Napi::Array list = a.at(i).As<Napi::Array>();
  Texts texts;
  for (uint32_t k = 0; k < list.Length(); k++) {
    const std::string name = "text[" + std::to_string(k) + "]";
    const Napi::Value pair = list.Get(k);
    if (!pair.IsArray()) a.type_error(name.c_str(), "a pair of strings", pair);
    std::string key = Latin1(a, pair.As<Napi::Array>().Get(0u), name + "[0]");
    if (key.empty() || key.size() > 79)
      a.range_error((name + "[0]").c_str(), "a key of 1 to 79 characters", std::to_string(key.size()));
    texts.emplace_back(std::move(key), Latin1(a, pair.As<Napi::Array>().Get(1u), name + "[1]"));
  }
  return texts;
}

/* Views of the texts; they last as long as these. */
std::vector<engine_text> ViewsOf(const Texts &texts) {
  std::vector<engine_text> views;
  for (const auto &[key, value] : texts) views.push_back({key.data(), value.data(), key.size(), value.size()});
  return views;
}

class EncodeJob final : public Job {
 public:
  /* is_filtered: the bytes are rows that PNG's filters have been through. */
  EncodeJob(const engine_png_options &options, Texts texts, Bytes pixels, bool is_filtered)
      : options_(options),
        texts_(std::move(texts)),
        pixels_(std::move(pixels)),
        file_(0),
        encode_(is_filtered ? engine_png_deflate : engine_png_encode),
        name_(is_filtered ? "deflatePng" : "encodePng") {}
  const char *Name() const override { return name_; }

  engine_status Work(const char **) override {
    const std::vector<engine_text> text = ViewsOf(texts_);
    options_.text = text.data();
    options_.text_count = text.size();
    const size_t bound = engine_png_bound(&options_);
    if (bound == 0) return ENGINE_BAD_ARGUMENT;
    file_ = Bytes(bound);
    return encode_({file_.data.get(), bound}, {pixels_.data.get(), pixels_.len}, &options_, &written_);
  }

  Napi::Value Result(Napi::Env env) override {
    return Napi::Uint8Array::New(env, written_, CopyOut(env, file_.data.get(), written_), 0);
  }

 private:
  engine_png_options options_;
  Texts texts_;
  Bytes pixels_, file_;
  decltype(&engine_png_encode) encode_;
  const char *name_;
  size_t written_ = 0;
};

/* A copy of the pixels as bytes: the job must own them, and converting costs no more than copying. */
Bytes CopyPixels(const Args &a, size_t count, int32_t bit_depth) {
  const char *expected = "a Uint8Array or Float32Array";
  const View pixels = a.view(a.at(0), "pixels", expected);
  if (pixels.type != napi_uint8_array && pixels.type != napi_float32_array) a.type_error("pixels", expected, a.at(0));
  const size_t sample = static_cast<size_t>(bit_depth / 8);
  const bool is_float = pixels.type == napi_float32_array;
  a.expect("pixels", pixels.len, {count, is_float ? 1 : sample});
  Bytes copy(is_float ? pixels.len * sample : pixels.len);
  const auto convert = sample == 2 ? engine_f32_to_u16 : engine_f32_to_u8;
  if (is_float) a.done(convert({copy.data.get(), copy.len}, {static_cast<const float *>(pixels.data), pixels.len}));
  else if (pixels.len > 0) std::memcpy(copy.data.get(), pixels.data, pixels.len);
  return copy;
}

/* From the four arguments at i on, and the bit depth. */
engine_png_options ReadOptions(const Args &a, size_t i, size_t depth) {
  engine_png_options options{};
  options.width = static_cast<uint32_t>(a.integer(i, "width", 1, INT32_MAX));
  options.height = static_cast<uint32_t>(a.integer(i + 1, "height", 1, INT32_MAX));
  options.channels = static_cast<int32_t>(a.integer(i + 2, "channels", 1, 4));
  options.level = static_cast<int32_t>(a.integer(i + 3, "level", 0, 9));
  options.bit_depth = a.bit_depth(depth);
  return options;
}

Napi::Value EncodePng(const Napi::CallbackInfo &info) {
  const Args a(info);
  Texts texts = ReadTexts(a, 5);
  const engine_png_options options = ReadOptions(a, 1, 6);
  // at most 2^31 * 2^31 * 4: never wraps
  const size_t count = size_t{options.width} * options.height * static_cast<size_t>(options.channels);
  Bytes pixels = CopyPixels(a, count, options.bit_depth);
  return Submit(info.Env(), std::make_unique<EncodeJob>(options, std::move(texts), std::move(pixels), false));
}

Napi::Value PngBound(const Napi::CallbackInfo &info) {
  const engine_png_options options = ReadOptions(Args(info), 0, 4);
  return Napi::Number::New(info.Env(), static_cast<double>(engine_png_bound(&options)));
}

Napi::Value EncodePngHere(const Napi::CallbackInfo &info) {
  const Args a(info);
  const Texts texts = ReadTexts(a, 6);
  engine_png_options options = ReadOptions(a, 2, 7);
  const std::vector<engine_text> text = ViewsOf(texts);
  options.text = text.data();
  options.text_count = text.size();
  const engine_u8 out = a.bytes_out(0, "out");
  const engine_cu8 pixels = a.bytes_in(1, "pixels");
  a.expect("pixels", pixels.len,
           {options.height, size_t{options.width} * static_cast<size_t>(options.channels * options.bit_depth / 8)});
  a.apart(out.data, out.len, pixels.data, pixels.len, "pixels", false);
  size_t written = 0;
  a.done(engine_png_encode(out, pixels, &options, &written));
  return Napi::Number::New(info.Env(), static_cast<double>(written));
}

Napi::Value DeflatePng(const Napi::CallbackInfo &info) {
  const Args a(info);
  Texts texts = ReadTexts(a, 5);
  const engine_png_options options = ReadOptions(a, 1, 6);
  const engine_cu8 rows = a.bytes_in(0, "rows");
  a.expect("rows", rows.len,
           {options.height, size_t{options.width} * static_cast<size_t>(options.channels * options.bit_depth / 8) + 1});
  Bytes copy(rows.len);
  if (rows.len > 0) std::memcpy(copy.data.get(), rows.data, rows.len);
  return Submit(info.Env(), std::make_unique<EncodeJob>(options, std::move(texts), std::move(copy), true));
}

/* One picture of a batch [B, H, W, C] of floats as bytes, and as the rows that PNG's filters make of them. */
class FilterJob final : public Job {
 public:
  FilterJob(std::shared_ptr<CudaBlock> images, size_t first, uint32_t width, uint32_t height, int channels)
      : images_(std::move(images)),
        first_(first),
        width_(width),
        height_(height),
        channels_(channels),
        pixels_(size_t{width} * height * static_cast<size_t>(channels)),
        rows_(pixels_.len + height) {}
  const char *Name() const override { return "filterPng"; }

  engine_status Work(const char **) override {
    const engine_cuda_table &cuda = *images_->device->table;
    engine_cuda *const device = images_->device->device;
    void *pixels = nullptr, *rows = nullptr;
    engine_status status = cuda.take(device, pixels_.len, &pixels);
    if (status == ENGINE_OK) status = cuda.take(device, rows_.len, &rows);
    if (status == ENGINE_OK) {
      const engine_u8 bytes{static_cast<uint8_t *>(pixels), pixels_.len};
      status = cuda.f32_to_u8(device, bytes, {static_cast<const float *>(images_->data) + first_, pixels_.len});
      if (status == ENGINE_OK)
        status = cuda.png_filter(device, {static_cast<uint8_t *>(rows), rows_.len}, {bytes.data, bytes.len}, width_,
                                 height_, channels_);
      if (status == ENGINE_OK) status = cuda.download(device, pixels_.data.get(), pixels, pixels_.len);
      if (status == ENGINE_OK) status = cuda.download(device, rows_.data.get(), rows, rows_.len);
    }
    cuda.give(device, pixels);
    cuda.give(device, rows);
    images_.reset();
    return status;
  }

  Napi::Value Result(Napi::Env env) override {
    Napi::Object result = Napi::Object::New(env);
    result.Set("pixels", Array(env, pixels_));
    result.Set("rows", Array(env, rows_));
    return result;
  }

 private:
  static Napi::Value Array(Napi::Env env, const Bytes &bytes) {
    return Napi::Uint8Array::New(env, bytes.len, CopyOut(env, bytes.data.get(), bytes.len), 0);
  }

  std::shared_ptr<CudaBlock> images_;
  size_t first_;
  uint32_t width_, height_;
  int channels_;
  Bytes pixels_, rows_;
};

Napi::Value FilterPng(const Napi::CallbackInfo &info) {
  const CudaArgs a(info);
  const auto width = static_cast<uint32_t>(a.integer(2, "width", 1, INT32_MAX));
  const auto height = static_cast<uint32_t>(a.integer(3, "height", 1, INT32_MAX));
  const auto channels = static_cast<int>(a.integer(4, "channels", 1, 4));
  const size_t index = a.size(1, "index"), have = a.in(0, "images").len;
  // at most 2^31 * 2^31 * 4: never wraps
  const size_t count = size_t{width} * height * static_cast<size_t>(channels);
  if (index >= have / count) a.range_error("index", "a picture of the batch", std::to_string(index));
  const std::shared_ptr<CudaBlock> &images = BlockOf(a, a.at(0), "images");
  return Submit(info.Env(), std::make_unique<FilterJob>(images, index * count, width, height, channels));
}

}  // namespace

void ExportPngEncode(const Exports &exports) {
  SetAll(
      exports.core,
      {{"encodePng", EncodePng}, {"encodePngHere", EncodePngHere}, {"pngBound", PngBound}, {"deflatePng", DeflatePng}});
  SetAll(exports.cuda, {{"filterPng", FilterPng}});
}

}  // namespace latentkit
