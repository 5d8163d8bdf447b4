// Rows of a PNG, filtered on a CUDA device.
#include <utility>

#include "bytes.h"
#include "cuda.h"
#include "operations.h"
#include "worker.h"

namespace latentkit {
namespace {

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

void ExportPngFilter(const Exports &exports) { SetAll(exports.cuda, {{"filterPng", FilterPng}}); }

}  // namespace latentkit
