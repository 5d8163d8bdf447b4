// The driver, a device and its kernels, and the one exported symbol: the table of the backend.
#include <dlfcn.h>

#include <cstdio>
#include <memory>

#include "device.h"

// Only missing functions refuse a driver: what it accepts does not follow from its version.
// decisions: It calls the driver and not the CUDA runtime
namespace latentkit::cuda {

bool Driver::load(const char *path, std::string *why) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char *reason = dlerror();
    *why = std::string("No CUDA driver was found (") + (reason != nullptr ? reason : path) + ").";
    return false;
  }
#define LK_FIND(name, symbol, parameters)                                                 \
  name = reinterpret_cast<int(*) parameters>(dlsym(library, symbol));                     \
  if (name == nullptr) {                                                                  \
    *why = "The CUDA driver " + std::string(path) + " is too old: it has no " symbol "."; \
    return false;                                                                         \
  }
  LK_DRIVER(LK_FIND)
#undef LK_FIND
  return true;
}

std::string Driver::name_of(int error) const {
  const char *name = nullptr;
  if (error_name(error, &name) != 0 || name == nullptr) name = "an unknown error";
  return std::string(name) + " (" + std::to_string(error) + ")";
}

// decisions: Any error but a lack of memory ends the device
/* ---- the device ---- */
namespace {

constexpr unsigned kNonBlocking = 1; /* apart from the legacy default stream */
constexpr int kOldestDriver = 11000; /* the first with every function used here in its present form */
constexpr int kMajor = 75, kMinor = 76;

#define LK_NAME(name) "lk_" #name,
constexpr const char *kNames[] = {LK_KERNELS(LK_NAME, LK_NAME)};
#undef LK_NAME

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

struct Opening {
  engine_cuda &device;
  std::string &why;

  /* True on success; else why says which function failed. */
  bool ask(const char *function, int error) {
    status = device.status(error);
    if (error == 0) return true;
    why = std::string("The CUDA driver failed: ") + function + " returned " + device.driver.name_of(error) + ".";
    return false;
  }
  engine_status refuse(std::string reason) {
    why = std::move(reason);
    return ENGINE_UNSUPPORTED;
  }

  engine_status find_device(int ordinal) {
    int count = 0;
    if (const int error = device.driver.init(0); error == kNoDevice) return refuse("The CUDA driver sees no device.");
    else if (!ask("cuInit", error)) return status;
    if (!ask("cuDriverGetVersion", device.driver.version(&version))) return status;
    if (version < kOldestDriver) {
      return refuse("The CUDA driver is too old: it supports CUDA " + version_text(version) + ", but " +
                    version_text(kOldestDriver) + " or newer is needed.");
    }
    if (!ask("cuDeviceGetCount", device.driver.device_count(&count))) return status;
    if (ordinal < 0 || ordinal >= count) {
      return refuse(count == 0 ? "The CUDA driver sees no device."
                               : "There is no CUDA device " + std::to_string(ordinal) + ": the driver sees " +
                                     std::to_string(count) + ", counted from 0.");
    }
    if (!ask("cuDeviceGet", device.driver.device_get(&device.device, ordinal))) return status;
    if (!ask("cuDevicePrimaryCtxRetain", device.driver.context_retain(&device.context, device.device))) return status;
    device.retained = true;
    return ENGINE_OK;
  }

  engine_status load_kernels() {
    if (const int error = device.driver.module_load(&device.module, image()); error == kOutOfMemory) {
      ask("cuModuleLoadData", error);
      return status;
    } else if (error != 0) {
      int major = 0, minor = 0;
      if (!ask("cuDeviceGetAttribute", device.driver.device_attribute(&major, kMajor, device.device))) return status;
      if (!ask("cuDeviceGetAttribute", device.driver.device_attribute(&minor, kMinor, device.device))) return status;
      return refuse("The kernels did not load, cuModuleLoadData returned " + device.driver.name_of(error) +
                    ": the device has compute capability " + std::to_string(major) + "." + std::to_string(minor) +
                    " and its driver supports CUDA " + version_text(version) + ", the kernels were compiled by CUDA " +
                    compiler() + " for " + architectures() + ".");
    }
    for (size_t i = 0; i < kKernels; i++) {
      if (!ask(kNames[i], device.driver.module_function(&device.kernels[i], device.module, kNames[i]))) return status;
    }
    if (!ask("cuStreamCreate", device.driver.stream_create(&device.stream, kNonBlocking))) return status;
    if (!ask("cuMemAlloc", device.driver.memory_alloc(&device.tickets, sizeof(unsigned)))) return status;
    ask("cuMemsetD32Async", device.driver.set_words(device.tickets, 0, 1, device.stream));
    return status;
  }

  engine_status status = ENGINE_OK;
  int version = 0;
};

struct Close {
  void operator()(engine_cuda *device) const { close(device); }
};

}  // namespace

engine_status open(const char *path, int ordinal, engine_cuda **result, std::string *why) {
  *result = nullptr;
  std::unique_ptr<engine_cuda, Close> device(new engine_cuda);
  if (*architectures() == '\0') {
    *why = "The CUDA library was built without a CUDA compiler and contains no kernels.";
    return ENGINE_UNSUPPORTED;
  }
  if (!device->driver.load(path, why)) return ENGINE_UNSUPPORTED;
  Opening opening{*device, *why};
  if (const engine_status status = opening.find_device(ordinal); status != ENGINE_OK) return status;
  const Current current(*device);
  if (!opening.ask("cuCtxPushCurrent", current.error())) return opening.status;
  if (const engine_status status = opening.load_kernels(); status != ENGINE_OK) return status;
  *result = device.release();
  return ENGINE_OK;
}

void close(engine_cuda *device) {
  if (device->retained) {
    {
      const Current current(*device);
      if (device->stream != nullptr) device->driver.stream_wait(device->stream);
      device->pool.clear();
      device->staging.clear();
      if (device->tickets != 0) device->driver.memory_free(device->tickets);
      if (device->stream != nullptr) device->driver.stream_destroy(device->stream);
      if (device->module != nullptr) device->driver.module_unload(device->module);
    }
    device->driver.context_release(device->device);
  }
  delete device;
}

/* ---- the table ---- */
namespace {

void report(char *to, size_t room, const char *text) {
  if (to != nullptr && room > 0) std::snprintf(to, room, "%s", text);
}

engine_status open_device(const char *driver, int ordinal, engine_cuda **device, char *why, size_t why_len) {
  *device = nullptr;
  report(why, why_len, "");
  try {
    std::string reason;
    const engine_status status = open(driver, ordinal, device, &reason);
    report(why, why_len, reason.c_str());
    return status;
  } catch (...) {
    report(why, why_len, "There is not enough memory to open the CUDA device.");
    return ENGINE_NO_MEMORY;
  }
}

engine_cuda_table make_table() {
  engine_cuda_table table{};
  table.abi = ENGINE_CUDA_ABI;
  table.bytes = sizeof table;
  table.architectures = architectures();
  table.open = open_device;
  table.close = close;
  fill_memory(&table);
  fill_elementwise(&table);
  fill_planes(&table);
  fill_reduce(&table);
  return table;
}

}  // namespace
}  // namespace latentkit::cuda

extern "C" __attribute__((visibility("default"))) const engine_cuda_table *latentkit_cuda(void) {
  static const engine_cuda_table table = latentkit::cuda::make_table();
  return &table;
}
