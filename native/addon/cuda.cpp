#include "cuda.h"

#if __has_include(<dlfcn.h>)
#include <dlfcn.h>
#endif

#include <map>
#include <mutex>
#include <new>
#include <tuple>

#include "operations.h"

namespace latentkit {
namespace {

constexpr napi_type_tag kDeviceTag = {0x6c61'7465'6e74'6b69, 0x7464'6576'6963'6531};
constexpr napi_type_tag kMemoryTag = {0x6c61'7465'6e74'6b69, 0x746d'656d'6f72'7931};

using DeviceHandle = std::shared_ptr<CudaDevice>;
using MemoryHandle = std::shared_ptr<CudaBlock>;

/* Tells the garbage collector about the device memory behind a small object. It expects CPU memory: if all of it
 * counted, a chain of large latents would make it collect after every fourth. */
void Account(napi_env env, int64_t bytes) {
  int64_t total = 0;
  napi_adjust_external_memory(env, bytes / 8, &total);
}

void DropDevice(napi_env, void *data, void *) { delete static_cast<DeviceHandle *>(data); }

void DropMemory(napi_env env, void *data, void *) {
  const std::unique_ptr<MemoryHandle> handle(static_cast<MemoryHandle *>(data));
  if (*handle != nullptr) Account(env, -static_cast<int64_t>((*handle)->bytes));
}

template <class Handle>
Napi::Value Wrap(Napi::Env env, Handle held, const napi_type_tag &tag, napi_finalize drop) {
  auto handle = std::make_unique<Handle>(std::move(held));
  const Napi::Object object = Napi::Object::New(env);
  if (napi_type_tag_object(env, object, &tag) != napi_ok ||
      napi_wrap(env, object, handle.get(), drop, nullptr, nullptr) != napi_ok)
    throw Napi::Error::New(env);
  handle.release();
  return object;
}

template <class Handle>
Handle &Unwrap(const Args &a, Napi::Value value, const napi_type_tag &tag, const char *name, const char *expected) {
  bool is_ours = false;
  void *data = nullptr;
  if (!value.IsObject() || napi_check_object_type_tag(a.env(), value, &tag, &is_ours) != napi_ok || !is_ours ||
      napi_unwrap(a.env(), value, &data) != napi_ok)
    a.type_error(name, expected, value);
  return *static_cast<Handle *>(data);
}

DeviceHandle &DeviceOf(const Args &a, size_t i) {
  return Unwrap<DeviceHandle>(a, a.at(i), kDeviceTag, "device", "an opened CUDA device");
}

/* The library stays loaded: its kernels may run until the process ends. */
const engine_cuda_table *LoadTable(const std::string &library, std::string *why) {
#if __has_include(<dlfcn.h>)
  void *loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) {
    const char *reason = dlerror();
    *why = reason == nullptr ? "it could not be loaded" : reason;
    return nullptr;
  }
  const auto entry = reinterpret_cast<decltype(&latentkit_cuda)>(dlsym(loaded, "latentkit_cuda"));
  const engine_cuda_table *table = entry == nullptr ? nullptr : entry();
  if (table != nullptr && table->abi == ENGINE_CUDA_ABI && table->bytes == sizeof(engine_cuda_table)) return table;
  *why = "it belongs to another version of latentkit";
#else
  (void)library;
  *why = "this system has no dlopen";
#endif
  return nullptr;
}

using DeviceKey = std::tuple<std::string, std::string, int>;

/* Devices that are open in this process; never destroyed, since threads may outlive main. */
struct OpenDevices {
  std::mutex mutex;
  std::map<DeviceKey, std::weak_ptr<CudaDevice>> devices;
};

DeviceHandle OpenShared(Napi::Env env, const DeviceKey &key) {
  static auto *const open = new OpenDevices;
  const std::lock_guard<std::mutex> lock(open->mutex);
  if (DeviceHandle shared = open->devices[key].lock()) return shared;
  const auto &[library, driver, ordinal] = key;
  std::string why;
  const engine_cuda_table *table = LoadTable(library, &why);
  if (table == nullptr) throw StatusError(env, ENGINE_UNSUPPORTED, library + ": " + why + ".");
  char reason[512] = "";
  engine_cuda *device = nullptr;
  const engine_status status = table->open(driver.c_str(), ordinal, &device, reason, sizeof reason);
  if (status != ENGINE_OK) {
    const std::string text = reason[0] == 0 ? std::string(engine_status_text(status)) + "." : std::string(reason);
    throw StatusError(env, status, text);
  }
  DeviceHandle opened(new CudaDevice{table, device});
  open->devices[key] = opened;
  return opened;
}

Napi::Value WrapBlock(Napi::Env env, const DeviceHandle &device, void *memory, size_t bytes) {
  auto block = std::make_shared<CudaBlock>(device, memory, bytes);
  const Napi::Value handle = Wrap<MemoryHandle>(env, std::move(block), kMemoryTag, DropMemory);
  Account(env, static_cast<int64_t>(bytes));
  return handle;
}

/* The bytes of a typed array, which must be as long as the memory. */
View SameBytes(const Args &a, size_t i, const char *name, size_t bytes) {
  View view = a.view(a.at(i), name, "a Float32Array or Uint8Array");
  if (view.type != napi_float32_array && view.type != napi_uint8_array)
    a.type_error(name, "a Float32Array or Uint8Array", a.at(i));
  if (view.type == napi_float32_array) view.len *= sizeof(float);
  a.expect(name, view.len, {bytes});
  return view;
}

}  // namespace

MemoryHandle &BlockOf(const Args &a, Napi::Value value, const char *name) {
  return Unwrap<MemoryHandle>(a, value, kMemoryTag, name, "memory of a CUDA device");
}

CudaBlock &CudaArgs::block(Napi::Value value, const char *name) const {
  const MemoryHandle &handle = BlockOf(*this, value, name);
  if (handle == nullptr)
    throw Napi::TypeError::New(env(), where(name) + "expected device memory, received memory that was released.");
  if (device_ == nullptr) device_ = handle->device.get();
  if (device_ != handle->device.get())
    throw Napi::TypeError::New(env(), where(name) + "expected memory of the same device, received memory of another.");
  return *handle;
}

engine_f32 CudaArgs::out(size_t i, const char *name) const {
  const CudaBlock &memory = block(at(i), name);
  return {static_cast<float *>(memory.data), memory.bytes / sizeof(float)};
}

engine_cf32 CudaArgs::in(Napi::Value value, const char *name) const {
  const CudaBlock &memory = block(value, name);
  return {static_cast<const float *>(memory.data), memory.bytes / sizeof(float)};
}

engine_cf32 CudaArgs::in(size_t i, const char *name, size_t length) const {
  const engine_cf32 span = in(i, name);
  expect(name, span.len, {length});
  return span;
}

engine_u8 CudaArgs::bytes_out(size_t i, const char *name) const {
  const CudaBlock &memory = block(at(i), name);
  return {static_cast<uint8_t *>(memory.data), memory.bytes};
}

engine_cu8 CudaArgs::bytes_in(size_t i, const char *name) const {
  const engine_u8 span = bytes_out(i, name);
  return {span.data, span.len};
}

engine_u32 CudaArgs::words_out(size_t i, const char *name) const {
  const CudaBlock &memory = block(at(i), name);
  return {static_cast<uint32_t *>(memory.data), memory.bytes / sizeof(uint32_t)};
}

namespace {

Napi::Value Open(const Napi::CallbackInfo &info) {
  const Args a(info);
  const DeviceKey key{a.text(0, "library"), a.text(1, "driver"), static_cast<int>(a.integer(2, "ordinal", 0, 1023))};
  return Wrap<DeviceHandle>(info.Env(), OpenShared(info.Env(), key), kDeviceTag, DropDevice);
}

Napi::Value Architectures(const Napi::CallbackInfo &info) {
  const Args a(info);
  return Napi::String::New(info.Env(), DeviceOf(a, 0)->table->architectures);
}

Napi::Value Memory(const Napi::CallbackInfo &info) {
  const Args a(info);
  const DeviceHandle &device = DeviceOf(a, 0);
  engine_cuda_memory memory{};
  a.done(device->table->memory(device->device, &memory));
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("total", Napi::Number::New(info.Env(), static_cast<double>(memory.total)));
  result.Set("free", Napi::Number::New(info.Env(), static_cast<double>(memory.free)));
  result.Set("lent", Napi::Number::New(info.Env(), static_cast<double>(memory.lent)));
  result.Set("pooled", Napi::Number::New(info.Env(), static_cast<double>(memory.pooled)));
  return result;
}

Napi::Value Trim(const Napi::CallbackInfo &info) {
  const Args a(info);
  const DeviceHandle &device = DeviceOf(a, 0);
  return a.done(device->table->trim(device->device));
}

Napi::Value Wait(const Napi::CallbackInfo &info) {
  const Args a(info);
  const DeviceHandle &device = DeviceOf(a, 0);
  return a.done(device->table->wait(device->device));
}

Napi::Value Take(const Napi::CallbackInfo &info) {
  const Args a(info);
  const DeviceHandle &device = DeviceOf(a, 0);
  const size_t bytes = a.size(1, "bytes");
  void *memory = nullptr;
  a.done(device->table->take(device->device, bytes, &memory));
  return WrapBlock(info.Env(), device, memory, bytes);
}

Napi::Value Release(const Napi::CallbackInfo &info) {
  const Args a(info);
  MemoryHandle &handle = BlockOf(a, a.at(0), "memory");
  if (handle == nullptr) return info.Env().Undefined();
  Account(info.Env(), -static_cast<int64_t>(handle->bytes));
  handle.reset();
  return info.Env().Undefined();
}

Napi::Value Upload(const Napi::CallbackInfo &info) {
  const CudaArgs a(info);
  const CudaBlock &to = a.block(a.at(0), "memory");
  const View from = SameBytes(a, 1, "values", to.bytes);
  return a.done(to.device->table->upload(to.device->device, to.data, from.data, to.bytes));
}

Napi::Value Download(const Napi::CallbackInfo &info) {
  const CudaArgs a(info);
  const CudaBlock &from = a.block(a.at(1), "memory");
  const View to = SameBytes(a, 0, "out", from.bytes);
  return a.done(from.device->table->download(from.device->device, to.data, from.data, from.bytes));
}

Napi::Value Copy(const Napi::CallbackInfo &info) {
  const CudaArgs a(info);
  const CudaBlock &to = a.block(a.at(0), "out"), &from = a.block(a.at(1), "memory");
  const size_t at = a.size(2, "at"), start = a.has(3) ? a.size(3, "start") : 0;
  if (start > from.bytes) a.range_error("start", "an offset within the memory", std::to_string(start));
  const size_t bytes = a.has(4) ? a.size(4, "bytes") : from.bytes - start;
  if (bytes > from.bytes - start) a.range_error("bytes", "as many as the memory has", std::to_string(bytes));
  if (at > to.bytes || bytes > to.bytes - at)
    a.range_error("at", "an offset that leaves room for the memory", std::to_string(at));
  return a.done(to.device->table->copy(to.device->device, static_cast<char *>(to.data) + at,
                                       static_cast<const char *>(from.data) + start, bytes));
}

}  // namespace

void ExportCudaMemory(const Exports &exports) {
  SetAll(exports.cuda, {{"open", Open},
                        {"architectures", Architectures},
                        {"memory", Memory},
                        {"trim", Trim},
                        {"wait", Wait},
                        {"take", Take},
                        {"release", Release},
                        {"upload", Upload},
                        {"download", Download},
                        {"copy", Copy}});
}

}  // namespace latentkit
