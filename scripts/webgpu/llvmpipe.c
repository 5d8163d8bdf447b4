// A driver of Vulkan in front of Mesa's llvmpipe, which Dawn then takes: WebGPU with float16 on the processor.
// DRIVER is the path of llvmpipe. Environment: LATENTKIT_VULKAN_VENDOR, the number of another vendor, whose shaders
// ONNX Runtime then writes.
#define VK_NO_PROTOTYPES
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vk_icd.h>
#include <vulkan/vulkan.h>

#define EXPORT __attribute__((visibility("default")))

static PFN_vkGetPhysicalDeviceFeatures get_features;
static PFN_vkGetPhysicalDeviceFeatures2 get_features2;
static PFN_vkGetPhysicalDeviceProperties get_properties;
static PFN_vkGetPhysicalDeviceProperties2 get_properties2;
static PFN_vkCreateDevice create_device;

/* Features without which Dawn refuses a device, and which shaders of ONNX Runtime do not use. */
static void set_claims(VkPhysicalDeviceFeatures *features, VkBool32 value) {
  features->shaderUniformBufferArrayDynamicIndexing = value;
  features->shaderSampledImageArrayDynamicIndexing = value;
  features->shaderStorageBufferArrayDynamicIndexing = value;
  features->shaderStorageImageArrayDynamicIndexing = value;
}

static VKAPI_ATTR void VKAPI_CALL claimed_features(VkPhysicalDevice device, VkPhysicalDeviceFeatures *out) {
  get_features(device, out);
  set_claims(out, VK_TRUE);
}

static VKAPI_ATTR void VKAPI_CALL claimed_features2(VkPhysicalDevice device, VkPhysicalDeviceFeatures2 *out) {
  get_features2(device, out);
  set_claims(&out->features, VK_TRUE);
}

static void rename_vendor(VkPhysicalDeviceProperties *properties) {
  const char *vendor = getenv("LATENTKIT_VULKAN_VENDOR");
  if (vendor != NULL) properties->vendorID = (uint32_t)strtoul(vendor, NULL, 0);
}

static VKAPI_ATTR void VKAPI_CALL renamed_properties(VkPhysicalDevice device, VkPhysicalDeviceProperties *out) {
  get_properties(device, out);
  rename_vendor(out);
}

static VKAPI_ATTR void VKAPI_CALL renamed_properties2(VkPhysicalDevice device, VkPhysicalDeviceProperties2 *out) {
  get_properties2(device, out);
  rename_vendor(&out->properties);
}

/* The real driver fails for a feature that it lacks. */
static VKAPI_ATTR VkResult VKAPI_CALL device_without_claims(VkPhysicalDevice device, const VkDeviceCreateInfo *options,
                                                            const VkAllocationCallbacks *allocator, VkDevice *out) {
  if (options->pEnabledFeatures != NULL) set_claims((VkPhysicalDeviceFeatures *)options->pEnabledFeatures, VK_FALSE);
  for (VkBaseOutStructure *next = (VkBaseOutStructure *)options->pNext; next != NULL; next = next->pNext)
    if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2)
      set_claims(&((VkPhysicalDeviceFeatures2 *)next)->features, VK_FALSE);
  return create_device(device, options, allocator, out);
}

static const struct {
  const char *name;
  void *real;
  PFN_vkVoidFunction ours;
} replaced[] = {
    {"vkGetPhysicalDeviceFeatures", &get_features, (PFN_vkVoidFunction)claimed_features},
    {"vkGetPhysicalDeviceFeatures2", &get_features2, (PFN_vkVoidFunction)claimed_features2},
    {"vkGetPhysicalDeviceFeatures2KHR", &get_features2, (PFN_vkVoidFunction)claimed_features2},
    {"vkGetPhysicalDeviceProperties", &get_properties, (PFN_vkVoidFunction)renamed_properties},
    {"vkGetPhysicalDeviceProperties2", &get_properties2, (PFN_vkVoidFunction)renamed_properties2},
    {"vkGetPhysicalDeviceProperties2KHR", &get_properties2, (PFN_vkVoidFunction)renamed_properties2},
    {"vkCreateDevice", &create_device, (PFN_vkVoidFunction)device_without_claims},
};

/* A symbol of the real driver. */
static void *symbol(const char *name) {
  static void *driver;
  if (driver == NULL) driver = dlopen(DRIVER, RTLD_NOW | RTLD_LOCAL);
  void *found = driver == NULL ? NULL : dlsym(driver, name);
  if (found == NULL) fprintf(stderr, "llvmpipe.c: %s\n", dlerror());
  return found;
}

/* Ours in front of a function of the real driver, or that function. */
static PFN_vkVoidFunction in_front_of(PFN_vkVoidFunction real, const char *name) {
  for (size_t i = 0; real != NULL && i < sizeof replaced / sizeof *replaced; i++) {
    if (strcmp(replaced[i].name, name) != 0) continue;
    memcpy(replaced[i].real, &real, sizeof real);
    return replaced[i].ours;
  }
  return real;
}

EXPORT VkResult vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version) {
  const PFN_vkNegotiateLoaderICDInterfaceVersion negotiate =
      (PFN_vkNegotiateLoaderICDInterfaceVersion)symbol("vk_icdNegotiateLoaderICDInterfaceVersion");
  return negotiate == NULL ? VK_ERROR_INCOMPATIBLE_DRIVER : negotiate(version);
}

EXPORT PFN_vkVoidFunction vk_icdGetInstanceProcAddr(VkInstance instance, const char *name) {
  const PFN_vkGetInstanceProcAddr find = (PFN_vkGetInstanceProcAddr)symbol("vk_icdGetInstanceProcAddr");
  return find == NULL ? NULL : in_front_of(find(instance, name), name);
}

EXPORT PFN_vkVoidFunction vk_icdGetPhysicalDeviceProcAddr(VkInstance instance, const char *name) {
  const PFN_GetPhysicalDeviceProcAddr find = (PFN_GetPhysicalDeviceProcAddr)symbol("vk_icdGetPhysicalDeviceProcAddr");
  return find == NULL ? NULL : in_front_of(find(instance, name), name);
}
