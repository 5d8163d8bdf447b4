// The part of Vulkan that lists devices, as its specification lays it out on 64-bit systems. No header of Vulkan is
// needed.
#pragma once

#include <cstdint>

namespace latentkit::vulkan {

using Instance = struct InstanceHandle *;
using Device = struct DeviceHandle *; /* VkPhysicalDevice */
using Function = void (*)();

constexpr int32_t kSuccess = 0;
constexpr int32_t kIncomplete = 5; /* more devices than asked for */
constexpr uint32_t kVersion11 = 1u << 22 | 1u << 12;

/* VkStructureType */
enum class Kind : int32_t {
  kApplication = 0,
  kInstance = 1,
  kFeatures = 1000059000,
  kProperties = 1000059001,
  kFloat16 = 1000082000,
  kStorage16 = 1000083000,
  kDriver = 1000196000,
};

/* VkPhysicalDeviceType */
enum class Type : int32_t { kOther = 0, kIntegrated = 1, kDiscrete = 2, kVirtual = 3, kCpu = 4 };

struct Application {
  Kind kind = Kind::kApplication;
  const void *next = nullptr;
  const char *name = nullptr;
  uint32_t version = 0;
  const char *engine = nullptr;
  uint32_t engine_version = 0;
  uint32_t api_version = kVersion11;
};

struct InstanceOptions {
  Kind kind = Kind::kInstance;
  const void *next = nullptr;
  uint32_t flags = 0;
  const Application *application = nullptr;
  uint32_t layer_count = 0;
  const char *const *layers = nullptr;
  uint32_t extension_count = 0;
  const char *const *extensions = nullptr;
};

/* VkPhysicalDeviceProperties */
struct Properties {
  uint32_t api_version;
  uint32_t driver_version;
  uint32_t vendor_id;
  uint32_t device_id;
  Type type;
  char name[256];
  uint8_t cache_id[16];
  alignas(8) uint8_t limits[504];
  uint32_t sparse[5];
};

/* VkPhysicalDeviceProperties2 */
struct PropertiesQuery {
  Kind kind = Kind::kProperties;
  void *next = nullptr;
  Properties properties{};
};

/* VkPhysicalDeviceDriverProperties: Vulkan 1.2; an older driver leaves it unchanged, as it does Float16 */
struct Driver {
  Kind kind = Kind::kDriver;
  void *next = nullptr;
  int32_t id = 0;
  char name[256]{};
  char info[256]{};
  uint8_t conformance[4]{};
};

/* VkPhysicalDeviceFeatures2 */
struct FeaturesQuery {
  Kind kind = Kind::kFeatures;
  void *next = nullptr;
  uint32_t features[55]{};
};

/* VkPhysicalDeviceShaderFloat16Int8Features */
struct Float16 {
  Kind kind = Kind::kFloat16;
  void *next = nullptr;
  uint32_t arithmetic = 0;
  uint32_t int8 = 0;
};

/* VkPhysicalDevice16BitStorageFeatures */
struct Storage16 {
  Kind kind = Kind::kStorage16;
  void *next = nullptr;
  uint32_t storage_buffer = 0;
  uint32_t uniform_buffer = 0;
  uint32_t push_constant = 0;
  uint32_t input_output = 0;
};

using CreateInstance = int32_t(const InstanceOptions *options, const void *allocator, Instance *instance);
using DestroyInstance = void(Instance instance, const void *allocator);
using ListDevices = int32_t(Instance instance, uint32_t *count, Device *devices);
using GetProperties = void(Device device, Properties *properties);
using QueryProperties = void(Device device, PropertiesQuery *query);
using QueryFeatures = void(Device device, FeaturesQuery *query);

}  // namespace latentkit::vulkan
