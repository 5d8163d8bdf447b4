// The kernels themselves, compiled for the CPU, and their launches.
#include "kernels/kernels.cu"

#include <tuple>
#include <type_traits>

#include "state.h"

namespace fake {

struct Kernel {
  std::string name;
  std::function<std::function<int()>(Device &, unsigned, unsigned, void **, std::string *)> prepare;
};

namespace {

/* A pointer of a launch must lead into a block, now and when the kernel runs. Parameters that are structs name theirs.
 */
struct Check {
  const Device &device;
  bool good = true;

  template <class T>
  void operator()(const T &value) {
    if constexpr (std::is_pointer_v<T>) {
      if (value != nullptr) good = good && holds(device, reinterpret_cast<uint64_t>(value), 1);
    } else if constexpr (requires { value.each_pointer(*this); }) {
      value.each_pointer(*this);
    }
  }
};

template <class... Parameters>
Kernel kernel(const char *name, void (*run)(Parameters...), bool together) {
  const auto prepare = [=](Device &device, unsigned blocks, unsigned threads, void **arguments, std::string *why) {
    const auto values = [&]<size_t... I>(std::index_sequence<I...>) {
      return std::tuple<Parameters...>(*static_cast<Parameters *>(arguments[I])...);
    }
    (std::index_sequence_for<Parameters...>());
    const auto good = [=, &device] {
      Check check{device};
      std::apply([&](const auto &...value) { (check(value), ...); }, values);
      return check.good;
    };
    if (!good()) *why = std::string(name) + " was launched on memory that is not the device's";
    return std::function<int()>([=] {
      if (!good()) return state().misuse(std::string(name) + " uses memory that was freed after its launch");
      if (!run_blocks(blocks, threads, together, [&] { std::apply(run, values); })) {
        return state().misuse(std::string(name) + ": threads of a block do not meet");
      }
      return 0;
    });
  };
  return {name, prepare};
}

const std::vector<Kernel> &kernels() {
#define FAKE_ALONE(name) kernel("lk_" #name, lk_##name, false),
#define FAKE_TOGETHER(name) kernel("lk_" #name, lk_##name, true),
  static const auto *all = new std::vector<Kernel>{LK_KERNELS(FAKE_ALONE, FAKE_TOGETHER)};
  return *all;
}

}  // namespace

const Kernel *find_kernel(const std::string &name) {
  for (const Kernel &entry : kernels()) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

const std::string &name_of(const Kernel *kernel) { return kernel->name; }

std::function<int()> prepare(const Kernel *kernel, Device &device, unsigned blocks, unsigned threads, void **arguments,
                             std::string *why) {
  return kernel->prepare(device, blocks, threads, arguments, why);
}

}  // namespace fake
