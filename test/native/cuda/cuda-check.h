// The library on the fake driver, and memory of its device whose surroundings are watched. Where LATENTKIT_TEST_CUDA
// names a library, that one is tried on the driver of the machine instead (LATENTKIT_CUDA_DRIVER, where it lies
// elsewhere): the same tests, on a GPU.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "check.h"
#include "cuda/fake/fake.h"
#include "engine_cuda.h"

/* A symbol of a library; a missing one ends the test. */
template <class T>
T *symbol(const char *path, const char *name) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void *symbol = library == nullptr ? nullptr : dlsym(library, name);
  if (symbol == nullptr) std::fprintf(stderr, "%s: %s\n", path, dlerror()), std::exit(1);
  return reinterpret_cast<T *>(symbol);
}

/* The library for a GPU, NULL for the fake driver. */
inline const char *on_gpu() { return std::getenv("LATENTKIT_TEST_CUDA"); }

inline const engine_cuda_table &cuda() {
  const char *library = on_gpu() != nullptr ? on_gpu() : LK_TEST_LIBRARY;
  static const auto *table = symbol<decltype(latentkit_cuda)>(library, "latentkit_cuda")();
  return *table;
}

inline void configure(const char *settings) {
  if (on_gpu() != nullptr) return;
  static auto *set = symbol<decltype(fake_cuda_configure)>(LK_TEST_DRIVER, "fake_cuda_configure");
  set(settings);
}

inline uint64_t counted(const char *what) {
  if (on_gpu() != nullptr) return 0;
  static auto *count = symbol<decltype(fake_cuda_count)>(LK_TEST_DRIVER, "fake_cuda_count");
  return count(what);
}

/* A device of the driver, closed at the end. On a GPU every one is the first. */
struct Device {
  engine_cuda *handle = nullptr;
  engine_status status;
  char why[256];

  explicit Device(int ordinal = 0) {
    const char *named = std::getenv("LATENTKIT_CUDA_DRIVER");
    const char *driver = on_gpu() == nullptr ? LK_TEST_DRIVER : named != nullptr ? named : "libcuda.so.1";
    status = cuda().open(driver, on_gpu() != nullptr ? 0 : ordinal, &handle, why, sizeof why);
    if (on_gpu() != nullptr && handle == nullptr) std::fprintf(stderr, "%s\n", why), std::exit(1);
  }
  ~Device() {
    if (handle != nullptr) cuda().close(handle);
  }
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;
};

/* The end of a program whose devices are closed: nothing may be left or have been done wrong. */
inline int finished() {
  CHECK(counted("misuses") == 0);
  CHECK(counted("leaked") == 0);
  return report();
}

/* `count` values on the device; what lies around them must stay. One in two begins `shift` values into its block, the
 * other ends where the block does, so that the address sanitizer sees a kernel that reads on. */
template <class T>
class OnDevice {
 public:
  OnDevice(const Device &device, size_t count, size_t shift)
      : device_(device.handle), count_(count), shift_(shift), whole_(count + shift + kAfter) {
    static unsigned turn = 0;
    if (turn++ % 2 == 0) {
      // the pool hands out powers of two as they are
      whole_.resize(std::bit_ceil(std::max(count * sizeof(T), size_t{512})) / sizeof(T));
      shift_ = whole_.size() - count;
    }
    for (size_t i = 0; i < whole_.size(); i++) whole_[i] = static_cast<T>(i % 120 + 1);
    CHECK(cuda().take(device_, bytes(), &memory_) == ENGINE_OK);
    CHECK(cuda().upload(device_, memory_, whole_.data(), bytes()) == ENGINE_OK);
  }
  OnDevice(const Device &device, const std::vector<T> &values, size_t shift) : OnDevice(device, values.size(), shift) {
    CHECK(cuda().upload(device_, data(), values.data(), count_ * sizeof(T)) == ENGINE_OK);
  }
  ~OnDevice() { cuda().give(device_, memory_); }
  OnDevice(const OnDevice &) = delete;
  OnDevice &operator=(const OnDevice &) = delete;

  T *data() const { return static_cast<T *>(memory_) + shift_; }
  size_t size() const { return count_; }

  std::vector<T> read() const {
    std::vector<T> all(whole_.size());
    CHECK(cuda().download(device_, all.data(), memory_, bytes()) == ENGINE_OK);
    for (size_t i = 0; i < all.size(); i++) {
      if (i < shift_ || i >= shift_ + count_) CHECK(all[i] == whole_[i]);
    }
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(shift_);
    return {first, first + static_cast<std::ptrdiff_t>(count_)};
  }

 private:
  static constexpr size_t kAfter = 9;

  engine_cuda *device_;
  size_t count_, shift_;
  std::vector<T> whole_;
  void *memory_ = nullptr;

  size_t bytes() const { return whole_.size() * sizeof(T); }
};

inline engine_f32 out(const OnDevice<float> &v) { return {v.data(), v.size()}; }
inline engine_cf32 in(const OnDevice<float> &v) { return {v.data(), v.size()}; }
inline engine_u8 out(const OnDevice<uint8_t> &v) { return {v.data(), v.size()}; }
inline engine_cu8 in(const OnDevice<uint8_t> &v) { return {v.data(), v.size()}; }

/* The same bits; of a NaN only that it is one. */
inline bool same_values(const std::vector<float> &a, const std::vector<float> &b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); i++) {
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0 && !(std::isnan(a[i]) && std::isnan(b[i]))) return false;
  }
  return true;
}

/* Numbers with zeros of both signs, the smallest and largest, infinities and NaN among them. */
inline std::vector<float> awkward(size_t n, uint32_t seed) {
  const float special[] = {0.0f, -0.0f, 1e-45f, -1e-40f, 3e38f, -3e38f, INFINITY, -INFINITY, NAN, 1.0f, 0.5f / 255.0f};
  std::vector<float> values = numbers(n, seed);
  for (size_t i = seed % 7; i < n; i += 7) values[i] = special[(i / 7 + seed) % (sizeof special / sizeof *special)];
  return values;
}

/* Reproducible choices. */
struct Choices {
  uint64_t state;
  explicit Choices(uint64_t seed) : state(seed * 0x9e3779b97f4a7c15u + 1) {}

  size_t below(size_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>((state >> 33) % n);
  }
  size_t from(size_t low, size_t high) { return low + below(high - low + 1); }
  /* Mostly small, now and then large; one in two is a multiple of 4, whose kernels work in fours. */
  size_t length(size_t most) {
    const size_t n = from(1, below(4) == 0 ? most : most < 300 ? most : 300);
    return below(2) == 0 ? n : (n + 3) / 4 * 4;
  }
  bool one_in(size_t n) { return below(n) == 0; }
  float number() { return static_cast<float>(below(20001)) / 5000.0f - 2.0f; }
  uint32_t seed() { return static_cast<uint32_t>(below(uint32_t{1} << 31)); }
};
