#include <algorithm>
#include <cstdio>
#include <type_traits>

#include "adapters/vulkan.h"
#include "engine.h"

#if defined(_WIN32)
#include <windows.h>
#elif defined(__linux__)
#include <dlfcn.h>
#endif

namespace latentkit {
namespace {

using namespace vulkan;

using Find = Function(Instance instance, const char *name);
[[maybe_unused]] constexpr char kFind[] = "vkGetInstanceProcAddr";

/* The loader's function that finds all others; NULL if no loader is installed. The library stays open: drivers that
 * it loaded may have threads. */
Find *open_loader() {
#if defined(_WIN32)
  const HMODULE library = LoadLibraryA("vulkan-1.dll");
  const auto find = library ? reinterpret_cast<void *>(GetProcAddress(library, kFind)) : nullptr;
#elif defined(__linux__)
  void *library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  const auto find = library ? dlsym(library, kFind) : nullptr;
#else
  void *find = nullptr;
#endif
  return reinterpret_cast<Find *>(find);
}

engine_adapter_type type_of(Type type) {
  switch (type) {
    case Type::kDiscrete: return ENGINE_ADAPTER_DISCRETE;
    case Type::kIntegrated: return ENGINE_ADAPTER_INTEGRATED;
    case Type::kVirtual: return ENGINE_ADAPTER_VIRTUAL;
    case Type::kCpu: return ENGINE_ADAPTER_CPU;
    case Type::kOther: break;
  }
  return ENGINE_ADAPTER_OTHER;
}

struct Functions {
  ListDevices *list;
  GetProperties *properties;
  QueryProperties *query_properties;
  QueryFeatures *query_features;

  engine_adapter describe(Device device) const {
    engine_adapter adapter{};
    Properties known{};
    properties(device, &known);
    std::snprintf(adapter.name, sizeof adapter.name, "%s", known.name);
    std::snprintf(adapter.driver, sizeof adapter.driver, "%u", known.driver_version);
    adapter.vendor_id = known.vendor_id;
    adapter.device_id = known.device_id;
    adapter.type = type_of(known.type);
    if (known.api_version < kVersion11) return adapter;

    Driver driver;
    PropertiesQuery more;
    more.next = &driver;
    query_properties(device, &more);
    if (driver.name[0] != 0)
      std::snprintf(adapter.driver, sizeof adapter.driver, driver.info[0] != 0 ? "%s %s" : "%s", driver.name,
                    driver.info);

    Storage16 storage;
    Float16 float16;
    float16.next = &storage;
    FeaturesQuery features;
    features.next = &float16;
    query_features(device, &features);
    adapter.has_float16 = float16.arithmetic != 0 && storage.storage_buffer != 0;
    return adapter;
  }

  size_t describe_all(Instance instance, engine_adapter *out) const {
    Device devices[ENGINE_ADAPTERS_MAX];
    uint32_t count = ENGINE_ADAPTERS_MAX;
    const int32_t result = list(instance, &count, devices);
    if (result != kSuccess && result != kIncomplete) return 0;
    for (uint32_t i = 0; i < count; i++) out[i] = describe(devices[i]);
    std::stable_sort(out, out + count, [](const auto &a, const auto &b) { return a.type < b.type; });
    return count;
  }
};

size_t adapters(engine_adapter *out) {
  Find *const find = open_loader();
  if (find == nullptr) return 0;
  Instance instance = nullptr;
  const auto resolve = [&](auto *&function, const char *name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(find(instance, name));
    return function != nullptr;
  };
  CreateInstance *create;
  DestroyInstance *destroy;
  const Application application;
  InstanceOptions options;
  options.application = &application;
  // a loader of Vulkan 1.0 refuses the version
  if (!resolve(create, "vkCreateInstance") || create(&options, nullptr, &instance) != kSuccess) return 0;
  Functions functions;
  const bool is_whole = resolve(functions.list, "vkEnumeratePhysicalDevices") &&
                        resolve(functions.properties, "vkGetPhysicalDeviceProperties") &&
                        resolve(functions.query_properties, "vkGetPhysicalDeviceProperties2") &&
                        resolve(functions.query_features, "vkGetPhysicalDeviceFeatures2");
  const size_t count = is_whole ? functions.describe_all(instance, out) : 0;
  if (resolve(destroy, "vkDestroyInstance")) destroy(instance, nullptr);
  return count;
}

}  // namespace
}  // namespace latentkit

size_t engine_adapters(engine_adapter out[ENGINE_ADAPTERS_MAX]) { return latentkit::adapters(out); }
