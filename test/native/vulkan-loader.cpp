// A loader of Vulkan without drivers, built by test/unit/native/graphics-adapters.test.ts. DEVICES is a list of
// {type, minor version of Vulkan, name of the driver, its version in words, float16 in shaders, 16 bits in buffers},
// CREATED the result of vkCreateInstance.
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "core/adapters/vulkan.h"

namespace latentkit::vulkan {

struct InstanceHandle {
} instance;

struct DeviceHandle {
  Type type;
  uint32_t minor_version;
  const char *driver, *info;
  uint32_t float16, storage;
} devices[] = {DEVICES};

}  // namespace latentkit::vulkan

using namespace latentkit::vulkan;

namespace {

constexpr uint32_t kCount = sizeof devices / sizeof *devices;
int instances = 0;

struct AtEnd {
  ~AtEnd() {
    if (instances != 0) _exit(9);
  }
} at_end;

int32_t create(const InstanceOptions *options, const void *, Instance *out) {
  if (options->application->api_version != kVersion11) return -9;
  if (CREATED == kSuccess) *out = &instance, instances++;
  return CREATED;
}

void destroy(Instance, const void *) { instances--; }

int32_t list(Instance, uint32_t *count, Device *out) {
  if (*count > kCount) *count = kCount;
  for (uint32_t i = 0; i < *count; i++) out[i] = devices + i;
  return *count < kCount ? kIncomplete : kSuccess;
}

void properties(Device device, Properties *out) {
  out->api_version = 1u << 22 | device->minor_version << 12;
  out->driver_version = 77;
  out->vendor_id = 0x10de;
  out->device_id = static_cast<uint32_t>(device - devices);
  out->type = device->type;
  std::snprintf(out->name, sizeof out->name, "Card %u", out->device_id);
}

void query_properties(Device device, PropertiesQuery *query) {
  auto *driver = static_cast<Driver *>(query->next);
  std::snprintf(driver->name, sizeof driver->name, "%s", device->driver);
  std::snprintf(driver->info, sizeof driver->info, "%s", device->info);
}

void query_features(Device device, FeaturesQuery *query) {
  auto *float16 = static_cast<Float16 *>(query->next);
  float16->arithmetic = device->float16;
  static_cast<Storage16 *>(float16->next)->storage_buffer = device->storage;
}

const struct {
  const char *name;
  Function function;
} kFunctions[] = {
    {"vkCreateInstance", reinterpret_cast<Function>(create)},
    {"vkDestroyInstance", reinterpret_cast<Function>(destroy)},
    {"vkEnumeratePhysicalDevices", reinterpret_cast<Function>(list)},
    {"vkGetPhysicalDeviceProperties", reinterpret_cast<Function>(properties)},
    {"vkGetPhysicalDeviceProperties2", reinterpret_cast<Function>(query_properties)},
    {"vkGetPhysicalDeviceFeatures2", reinterpret_cast<Function>(query_features)},
};

}  // namespace

extern "C" Function vkGetInstanceProcAddr(Instance, const char *name) {
  for (const auto &known : kFunctions)
    if (std::strcmp(known.name, name) == 0) return known.function;
  return nullptr;
}
