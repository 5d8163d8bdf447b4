// The instruction set and threads of the core, and calls of the operating system that Node does not offer.
#include <cerrno>
#ifndef _WIN32
#include <sys/file.h>
#endif
#ifdef __linux__
#include <sys/prctl.h>

#include <csignal>
#endif
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "operations.h"

namespace latentkit {
namespace {

// The system keeps the lock with the open file, so that a killed process leaves none behind.
Napi::Value LockFile(const Napi::CallbackInfo &info) {
  const Args a(info);
  [[maybe_unused]] const int fd = static_cast<int>(a.integer(0, "fd", 0, INT32_MAX));
#ifdef _WIN32
  const int error = ENOSYS;
#else
  const int error = flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
#endif
  return Napi::Number::New(info.Env(), error);
}

// glibc keeps what was freed in the middle of its heap.
Napi::Value TrimHeap(const Napi::CallbackInfo &info) {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  return info.Env().Undefined();
}

Napi::Value DieWithParent(const Napi::CallbackInfo &info) {
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  return info.Env().Undefined();
}

const char *TypeName(engine_adapter_type type) {
  switch (type) {
    case ENGINE_ADAPTER_DISCRETE: return "discrete";
    case ENGINE_ADAPTER_INTEGRATED: return "integrated";
    case ENGINE_ADAPTER_VIRTUAL: return "virtual";
    case ENGINE_ADAPTER_CPU: return "cpu";
    case ENGINE_ADAPTER_OTHER: break;
  }
  return "other";
}

Napi::Value GraphicsAdapters(const Napi::CallbackInfo &info) {
  engine_adapter adapters[ENGINE_ADAPTERS_MAX];
  const size_t count = engine_adapters(adapters);
  Napi::Array list = Napi::Array::New(info.Env());
  for (const engine_adapter *adapter = adapters; adapter != adapters + count; adapter++) {
    Napi::Object entry = Napi::Object::New(info.Env());
    entry.Set("name", adapter->name);
    entry.Set("vendorId", adapter->vendor_id);
    entry.Set("deviceId", adapter->device_id);
    entry.Set("type", TypeName(adapter->type));
    entry.Set("driver", adapter->driver);
    entry.Set("hasFloat16", Napi::Boolean::New(info.Env(), adapter->has_float16 != 0));
    list.Set(list.Length(), entry);
  }
  return list;
}

const char *const kSets[] = {"avx512", "avx2", "baseline"};

Napi::Value Isa(const Napi::CallbackInfo &info) { return Napi::String::New(info.Env(), engine_isa()); }

Napi::Value Isas(const Napi::CallbackInfo &info) {
  Napi::Array list = Napi::Array::New(info.Env());
  for (const char *name : kSets)
    if (engine_isa_supported(name)) list.Set(list.Length(), Napi::String::New(info.Env(), name));
  return list;
}

Napi::Value SetIsa(const Napi::CallbackInfo &info) {
  const Args a(info);
  const std::string name = a.text(0, "name");
  const engine_status status = engine_set_isa(name.c_str());
  if (status == ENGINE_OK) return info.Env().Undefined();
  throw StatusError(info.Env(), status,
                    a.where("name") + "expected an instruction set of this processor, received " + name + ".");
}

Napi::Value Threads(const Napi::CallbackInfo &info) { return Napi::Number::New(info.Env(), engine_threads()); }

Napi::Value SetThreads(const Napi::CallbackInfo &info) {
  const Args a(info);
  return a.done(engine_set_threads(static_cast<int>(a.integer(0, "count", 1, 256))));
}

}  // namespace

void ExportSystem(const Exports &exports) {
  SetAll(exports.core, {{"lockFile", LockFile},
                        {"trimHeap", TrimHeap},
                        {"dieWithParent", DieWithParent},
                        {"graphicsAdapters", GraphicsAdapters}});
  SetAll(exports.core,
         {{"isa", Isa}, {"isas", Isas}, {"setIsa", SetIsa}, {"threads", Threads}, {"setThreads", SetThreads}});
}

}  // namespace latentkit
