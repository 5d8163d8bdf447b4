// Shared parts of the fake driver. Everything is used under one lock.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace fake {

constexpr int kInvalidValue = 1, kOutOfMemory = 2, kNoDevice = 100, kInvalidDevice = 101, kInvalidContext = 201,
              kInvalidHandle = 400, kNotFound = 500, kIllegalAddress = 700;

struct Failure {
  std::string where;
  int error;
  uint64_t nth;
};

struct Settings {
  int devices = 1, version = 13000, capability = 90;
  uint64_t memory = uint64_t{8} << 30;
  std::string name = "Fake CUDA device";
  std::vector<Failure> failures;
};

/* Work that waits in order, as on a GPU; it is done at the next wait. */
struct Device {
  int ordinal = 0, references = 0;
  int broken = 0; /* an error that stays */
  std::deque<std::function<int()>> queue;
  uint64_t queued = 0, done = 0;

  void add(std::function<int()> work) {
    queue.push_back(std::move(work));
    queued++;
  }
  /* Does the work up to number `last`. */
  int run(uint64_t last);
  int run() { return run(queued); }
};

struct State {
  std::recursive_mutex mutex;
  Settings settings;
  std::map<std::string, uint64_t> counts;
  std::vector<std::string> misuses;
  std::map<int, Device> devices;

  State();
  /* Counts a call of a driver's function or a kernel; the error it is to return, or 0. */
  int call(const std::string &name);
  int misuse(const std::string &what);
};

State &state();
Settings parse(const char *text);

// memory of devices and pinned CPU memory
int take(Device &device, size_t bytes, uint64_t *address);
int give(Device &device, uint64_t address);
/* True where [address, address + bytes) lies in one block of the device. */
bool holds(const Device &device, uint64_t address, size_t bytes);
uint64_t taken(const Device &device);
/* Frees what is left of a device and counts it as leaked. */
void drop(Device &device);
int pin(size_t bytes, void **memory);
int unpin(void *memory);
bool pinned(const void *memory, size_t bytes);

/* The work of a launch, or nothing if the name is unknown; why describes what is wrong with its arguments. */
struct Kernel;
const Kernel *find_kernel(const std::string &name);
const std::string &name_of(const Kernel *kernel);
std::function<int()> prepare(const Kernel *kernel, Device &device, unsigned blocks, unsigned threads, void **arguments,
                             std::string *why);

/* Runs `threads` threads of each block, one after another, or in turns from meeting to meeting. False where threads of
 * a block do not meet. */
bool run_blocks(unsigned blocks, unsigned threads, bool together, const std::function<void()> &body);

}  // namespace fake
