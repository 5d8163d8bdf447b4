// Locks of open files.
#include <cerrno>
#ifndef _WIN32
#include <sys/file.h>
#endif

#include "args.h"
#include "operations.h"

namespace latentkit {
namespace {

// The system keeps the lock with the open file, so that a process that is killed leaves none behind.
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

}  // namespace

void ExportLock(const Exports &exports) { SetAll(exports.core, {{"lockFile", LockFile}}); }

}  // namespace latentkit
