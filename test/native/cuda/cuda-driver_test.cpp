// Every result of a driver: none, too old, no device, faults at any call; and memory, its reuse and its end.
#include <cstring>

#include "cuda-check.h"

namespace {

/* Opens with these settings of the driver; the status and a word of the reason. */
void opens_with(const char *settings, engine_status expected, const char *part, int ordinal = 0) {
  configure(settings);
  Device device(ordinal);
  CHECK(device.status == expected && (device.handle != nullptr) == (expected == ENGINE_OK));
  if (std::strstr(device.why, part) == nullptr || (expected == ENGINE_OK) != (device.why[0] == '\0')) {
    std::fprintf(stderr, "%s: the reason is \"%s\"\n", settings, device.why);
    CHECK(false);
  }
}

void opening() {
  CHECK(cuda().abi == ENGINE_CUDA_ABI && cuda().bytes == sizeof(engine_cuda_table));
  CHECK(std::strcmp(cuda().architectures, "75,80,86,89,90,100,120") == 0);
  opens_with("", ENGINE_OK, "");
  opens_with("devices=2", ENGINE_OK, "", 1);
  opens_with("devices=0", ENGINE_UNSUPPORTED, "no device");
  opens_with("devices=2", ENGINE_UNSUPPORTED, "no CUDA device 2: the driver sees 2", 2);
  opens_with("", ENGINE_UNSUPPORTED, "no CUDA device -1", -1);
  opens_with("version=10020", ENGINE_UNSUPPORTED, "supports CUDA 10.2, but 11.0");
  opens_with("fail=cuModuleLoadData:209,capability=61,version=12040", ENGINE_UNSUPPORTED,
             "CUDA_ERROR_NO_BINARY_FOR_GPU (209): the device has compute capability 6.1 and its driver supports CUDA "
             "12.4, the kernels were compiled by CUDA 13.0 for 75,80,86,89,90,100,120");
  opens_with("fail=cuModuleLoadData:2", ENGINE_NO_MEMORY, "cuModuleLoadData returned CUDA_ERROR_OUT_OF_MEMORY (2)");
  opens_with("fail=cuMemAlloc_v2:2", ENGINE_NO_MEMORY, "cuMemAlloc");
  for (const char *function :
       {"cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDevicePrimaryCtxRetain",
        "cuCtxPushCurrent_v2", "cuModuleGetFunction", "cuStreamCreate", "cuMemAlloc_v2", "cuMemsetD32Async"}) {
    const std::string settings = std::string("fail=") + function + ":999";
    opens_with(settings.c_str(), ENGINE_DEVICE_LOST, "an unknown error (999)");
    CHECK(counted("leaked") == 0 && counted("misuses") == 0);
    CHECK(counted("cuDevicePrimaryCtxRelease_v2") ==
          (counted("cuDevicePrimaryCtxRetain") > 0 && std::strcmp(function, "cuDevicePrimaryCtxRetain") != 0));
  }
}

void other_libraries() {
  engine_cuda *device = nullptr;
  char why[256] = "";
  CHECK(cuda().open("/nowhere/libcuda.so.1", 0, &device, why, sizeof why) == ENGINE_UNSUPPORTED && device == nullptr);
  CHECK(std::strstr(why, "No CUDA driver was found (/nowhere/libcuda.so.1") != nullptr);
  // a library, but no driver
  CHECK(cuda().open(LK_TEST_LIBRARY, 0, &device, why, sizeof why) == ENGINE_UNSUPPORTED && device == nullptr);
  CHECK(std::strstr(why, "it has no cuInit") != nullptr);
  char small[6];
  CHECK(cuda().open("/nowhere/libcuda.so.1", 0, &device, small, sizeof small) == ENGINE_UNSUPPORTED);
  CHECK(std::strcmp(small, "No CU") == 0);
  CHECK(cuda().open("/nowhere/libcuda.so.1", 0, &device, nullptr, 0) == ENGINE_UNSUPPORTED);
}

void copies() {
  configure("");
  {
    Device device;
    // larger than the pieces that copies are cut into
    for (size_t bytes : {size_t{0}, size_t{1}, size_t{511}, size_t{4} << 20, (size_t{9} << 20) + 3}) {
      std::vector<uint8_t> data(bytes), back(bytes, 1);
      for (size_t i = 0; i < bytes; i++) data[i] = static_cast<uint8_t>(i * 2654435761u >> 13);
      void *a = nullptr, *b = nullptr;
      CHECK(cuda().take(device.handle, bytes, &a) == ENGINE_OK && cuda().take(device.handle, bytes, &b) == ENGINE_OK);
      CHECK((a == nullptr) == (bytes == 0));
      std::vector<uint8_t> source = data;
      CHECK(cuda().upload(device.handle, a, source.data(), bytes) == ENGINE_OK);
      // the copy is not done yet, and its source may go
      std::fill(source.begin(), source.end(), 0);
      CHECK(cuda().copy(device.handle, b, a, bytes) == ENGINE_OK);
      CHECK(cuda().download(device.handle, back.data(), b, bytes) == ENGINE_OK);
      CHECK(same_bytes(data, back));
      cuda().give(device.handle, a);
      cuda().give(device.handle, b);
    }
  }
  CHECK(counted("misuses") == 0 && counted("leaked") == 0);
}

engine_cuda_memory sizes(const Device &device) {
  engine_cuda_memory memory;
  CHECK(cuda().memory(device.handle, &memory) == ENGINE_OK);
  return memory;
}

void pool() {
  constexpr size_t kMiB = size_t{1} << 20;
  configure("memory=8388608");
  {
    Device device;
    engine_cuda *d = device.handle;
    void *a = nullptr, *b = nullptr, *c = nullptr;
    CHECK(sizes(device).total == 8 * kMiB && sizes(device).lent == 0);
    CHECK(cuda().take(d, 3 * kMiB, &a) == ENGINE_OK && sizes(device).lent == 3 * kMiB);
    cuda().give(d, a);
    CHECK(sizes(device).lent == 0 && sizes(device).pooled == 3 * kMiB);
    // nearly the same size gets the same block, without the driver
    const uint64_t calls = counted("cuMemAlloc_v2");
    CHECK(cuda().take(d, 3 * kMiB - 100, &b) == ENGINE_OK && b == a && counted("cuMemAlloc_v2") == calls);
    cuda().give(d, b);
    // a larger block needs the memory of the cached ones
    CHECK(cuda().take(d, 7 * kMiB, &c) == ENGINE_OK && sizes(device).pooled == 0 && sizes(device).lent == 7 * kMiB);
    CHECK(cuda().take(d, 3 * kMiB, &a) == ENGINE_NO_MEMORY && a == nullptr);
    CHECK(cuda().take(d, SIZE_MAX, &a) == ENGINE_NO_MEMORY && a == nullptr);
    // and the device goes on
    CHECK(cuda().fill(d, {static_cast<float *>(c), 100}, 1.0f) == ENGINE_OK);
    CHECK(cuda().wait(d) == ENGINE_OK);
    cuda().give(d, c);
    cuda().give(d, nullptr);
    cuda().give(d, &device);  // nothing that it lent
    CHECK(cuda().trim(d) == ENGINE_OK && sizes(device).pooled == 0 && sizes(device).free > 8 * kMiB - 4096);
    CHECK(cuda().take(d, 1, &a) == ENGINE_OK);  // left to close
  }
  CHECK(counted("misuses") == 0 && counted("leaked") == 0);
}

/* A reduction that finds no room for its sums fails, and nothing was written. */
void no_room_for_sums() {
  configure("memory=34816");
  {
    Device device;
    engine_cuda *d = device.handle;
    void *a = nullptr;
    CHECK(cuda().take(d, 32768, &a) == ENGINE_OK);
    float deviation = -1.0f;
    std::vector<float> x = numbers(8192, 3), back(8192);
    CHECK(cuda().upload(d, a, x.data(), 32768) == ENGINE_OK);
    void *rest = nullptr;
    while (cuda().take(d, 1, &rest) == ENGINE_OK) continue;
    const engine_cf32 span = {static_cast<float *>(a), 8192};
    CHECK(cuda().std(d, span, &deviation) == ENGINE_NO_MEMORY && deviation == -1.0f);
    engine_inject_options options = {};
    options.normalize = 1;
    CHECK(cuda().inject_noise(d, {static_cast<float *>(a), 8192}, span, span, &options, nullptr) == ENGINE_NO_MEMORY);
    CHECK(cuda().download(d, back.data(), a, 32768) == ENGINE_OK && same_bytes(x, back));
  }
  CHECK(counted("misuses") == 0 && counted("leaked") == 0);
}

/* A mask that many planes read is resized ahead of them, for one plane or without room it is not: same bits. Where
 * noise is drawn it always is. */
void masks_ahead() {
  configure("memory=65536");
  {
    Device device;
    engine_cuda *d = device.handle;
    constexpr size_t kBytes = 16384, kPlane = 256;
    void *a = nullptr, *b = nullptr, *mask = nullptr, *room = nullptr, *rest = nullptr;
    CHECK(cuda().take(d, kBytes, &a) == ENGINE_OK && cuda().take(d, kBytes, &b) == ENGINE_OK);
    CHECK(cuda().take(d, 24, &mask) == ENGINE_OK && cuda().take(d, kPlane * sizeof(float), &room) == ENGINE_OK);
    while (cuda().take(d, 1, &rest) == ENGINE_OK) continue;
    const std::vector<float> x = numbers(kBytes / sizeof(float), 5), m = numbers(6, 6);
    CHECK(cuda().upload(d, a, x.data(), kBytes) == ENGINE_OK && cuda().upload(d, mask, m.data(), 24) == ENGINE_OK);
    const engine_cf32 masks = {static_cast<float *>(mask), 6};
    const auto blended = [&](size_t planes) {
      const size_t n = planes * kPlane;
      const engine_f32 to = {static_cast<float *>(b), n};
      const engine_cf32 from = {static_cast<float *>(a), n};
      std::vector<float> back(n);
      CHECK(cuda().fill(d, to, 1.0f) == ENGINE_OK);
      CHECK(cuda().resized_blend(d, to, from, {to.data, n}, masks, {1, planes, 16, 16}, 1, 2, 3) == ENGINE_OK);
      CHECK(cuda().download(d, back.data(), b, n * sizeof(float)) == ENGINE_OK);
      return back;
    };
    const auto drawn = [&](size_t planes) {
      const engine_cuda_draw draw = {1, 0, 256, 1.0f};
      engine_inject_options options = {};
      options.mix = 0.5, options.mask = masks, options.shape = {1, planes, 16, 16};
      options.mask_n = 1, options.mask_h = 2, options.mask_w = 3;
      const size_t n = planes * kPlane;
      const engine_f32 to = {static_cast<float *>(b), n};
      return cuda().inject_noise(d, to, {static_cast<float *>(a), n}, {to.data, n}, &options, &draw);
    };
    const std::vector<float> without = blended(16);
    CHECK(drawn(16) == ENGINE_NO_MEMORY && counted("lk_resize") == 0 && counted("lk_inject_drawn") == 0);
    cuda().give(d, room);
    CHECK(same_bytes(without, blended(16)) && counted("lk_resize") == 1);
    blended(1);
    CHECK(counted("lk_resize") == 1);
    CHECK(drawn(1) == ENGINE_OK && counted("lk_resize") == 2 && counted("lk_inject_drawn") == 1);
  }
  CHECK(counted("misuses") == 0 && counted("leaked") == 0);
}

using Calls = std::vector<std::pair<std::string, uint64_t>>;

/* Calls everything that can fail until one does; returns its status. calls, where not NULL: the number of calls of the
 * driver. */
engine_status use(const Device &device, Calls *calls = nullptr) {
  engine_cuda *d = device.handle;
  std::vector<float> x = numbers(20000, 1);
  void *a = nullptr, *b = nullptr;
  float deviation = 0;
  const auto run = [&]() -> engine_status {
#define TRY(call) \
  if (const engine_status status = call; status != ENGINE_OK) return status
    TRY(cuda().take(d, 80000, &a));
    TRY(cuda().take(d, 80000, &b));
    const engine_f32 out = {static_cast<float *>(b), 20000};
    const engine_cf32 in = {static_cast<float *>(a), 20000};
    engine_inject_options options = {};
    options.normalize = 1;
    TRY(cuda().upload(d, a, x.data(), 80000));
    TRY(cuda().fill(d, out, 0.0f));
    TRY(cuda().copy(d, b, a, 80000));
    TRY(cuda().scale(d, out, in, 2.0f));
    TRY(cuda().wait(d));
    TRY(cuda().std(d, in, &deviation));
    TRY(cuda().inject_noise(d, out, in, in, &options, nullptr));
    TRY(cuda().download(d, x.data(), b, 80000));
    engine_cuda_memory memory;
    TRY(cuda().memory(d, &memory));
    TRY(cuda().trim(d));
#undef TRY
    return ENGINE_OK;
  };
  const engine_status status = run();
  for (const char *name :
       {"cuMemAlloc_v2", "cuMemHostAlloc", "cuEventCreate", "cuEventRecord", "cuEventSynchronize",
        "cuStreamSynchronize", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2",
        "cuMemsetD32Async", "cuLaunchKernel", "cuCtxPushCurrent_v2", "cuMemGetInfo_v2", "cuMemFree_v2"}) {
    if (calls != nullptr) calls->emplace_back(name, counted(name));
  }
  cuda().give(d, a);
  cuda().give(d, b);
  return status;
}

/* A fault at every call of every function: it ends the device, or is a lack of memory; nothing leaks or is misused. */
void faults() {
  Calls calls;
  configure("");
  {
    Device device;
    CHECK(use(device, &calls) == ENGINE_OK);
  }
  for (const auto &[name, count] : calls) {
    CHECK(count > 0);
    for (uint64_t nth = 1; nth <= count; nth++) {
      for (int error : {2, 1, 719}) {
        const std::string settings = "fail=" + name + ":" + std::to_string(error) + ":" + std::to_string(nth);
        configure(settings.c_str());
        {
          Device device;
          const engine_status status = device.handle == nullptr ? device.status : use(device);
          // copies do without memory of their own
          const bool copes = name == "cuMemHostAlloc";
          const engine_status expected = error != 2 ? ENGINE_DEVICE_LOST : copes ? ENGINE_OK : ENGINE_NO_MEMORY;
          if (status != expected) {
            std::fprintf(stderr, "%s: %s\n", settings.c_str(), engine_status_text(status));
            CHECK(false);
          }
          float value = 0;
          if (status == ENGINE_DEVICE_LOST && device.handle != nullptr) {
            void *memory = nullptr;
            CHECK(cuda().take(device.handle, 100, &memory) == ENGINE_DEVICE_LOST && memory == nullptr);
            CHECK(cuda().take(device.handle, 0, &memory) == ENGINE_DEVICE_LOST);
            CHECK(cuda().wait(device.handle) == ENGINE_DEVICE_LOST);
            CHECK(cuda().std(device.handle, {nullptr, 0}, &value) == ENGINE_DEVICE_LOST);
          }
          if (status == ENGINE_NO_MEMORY && device.handle != nullptr) CHECK(use(device) == ENGINE_OK);
        }
        CHECK(counted("misuses") == 0);
      }
    }
  }
}

/* A kernel's fault comes out at the next wait. */
void faulty_kernel() {
  configure("fail=lk_axpy:700");
  Device device;
  OnDevice<float> x(device, 100, 0);
  CHECK(cuda().axpy(device.handle, out(x), in(x), in(x), 1.0f) == ENGINE_OK);
  CHECK(cuda().wait(device.handle) == ENGINE_DEVICE_LOST);
  CHECK(cuda().scale(device.handle, out(x), in(x), 1.0f) == ENGINE_DEVICE_LOST);
}

/* injectNoise waits for the deviation, and not for the kernel that divides by it: that one's fault comes later. */
void only_the_deviation_is_waited_for() {
  configure("fail=lk_inject:700");
  Device device;
  OnDevice<float> x(device, 100, 0);
  engine_inject_options options = {};
  options.normalize = 1;
  CHECK(cuda().inject_noise(device.handle, out(x), in(x), in(x), &options, nullptr) == ENGINE_OK);
  CHECK(counted("lk_inject") == 1 && cuda().wait(device.handle) == ENGINE_DEVICE_LOST);
}

}  // namespace

int main() {
  opening();
  other_libraries();
  copies();
  pool();
  no_room_for_sums();
  masks_ahead();
  faults();
  faulty_kernel();
  only_the_deviation_is_waited_for();
  return report();
}
