#include "driver.h"

#include <dlfcn.h>

// decisions 72, 76
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

}  // namespace latentkit::cuda
