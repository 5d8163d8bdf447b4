// Settings, counts and the list of misuses.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "fake.h"
#include "state.h"

namespace fake {
namespace {

Failure parse_failure(const std::string &text) {
  std::istringstream in(text);
  std::string where, error, nth;
  std::getline(in, where, ':');
  std::getline(in, error, ':');
  std::getline(in, nth, ':');
  return {where, std::atoi(error.c_str()), nth.empty() ? 1 : std::strtoull(nth.c_str(), nullptr, 10)};
}

}  // namespace

Settings parse(const char *text) {
  Settings settings;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) {
    const size_t at = part.find('=');
    const std::string key = part.substr(0, at), value = at == std::string::npos ? "" : part.substr(at + 1);
    if (key == "devices") settings.devices = std::atoi(value.c_str());
    else if (key == "version") settings.version = std::atoi(value.c_str());
    else if (key == "capability") settings.capability = std::atoi(value.c_str());
    else if (key == "memory") settings.memory = std::strtoull(value.c_str(), nullptr, 10);
    else if (key == "name") settings.name = value;
    else if (key == "fail") settings.failures.push_back(parse_failure(value));
    else if (!key.empty()) std::fprintf(stderr, "fake CUDA driver: unknown setting %s\n", key.c_str()), std::abort();
  }
  return settings;
}

State::State() {
  const char *text = std::getenv("LATENTKIT_FAKE_CUDA");
  settings = parse(text != nullptr ? text : "");
}

State &state() {
  static State *instance = new State;  // threads of the process may outlive static objects
  return *instance;
}

int State::call(const std::string &name) {
  const uint64_t number = ++counts[name];
  for (const Failure &failure : settings.failures) {
    if (failure.where == name && failure.nth == number) return failure.error;
  }
  return 0;
}

int State::misuse(const std::string &what) {
  std::fprintf(stderr, "fake CUDA driver: %s\n", what.c_str());
  counts["misuses"]++;
  misuses.push_back(what);
  return kIllegalAddress;
}

int Device::run(uint64_t last) {
  while (broken == 0 && done < last && !queue.empty()) {
    const std::function<int()> work = std::move(queue.front());
    queue.pop_front();
    done++;
    broken = work();
  }
  return broken;
}

}  // namespace fake

#define FAKE_API extern "C" __attribute__((visibility("default")))

FAKE_API void fake_cuda_configure(const char *settings) {
  fake::State &state = fake::state();
  const std::lock_guard lock(state.mutex);
  for (auto &[ordinal, device] : state.devices) fake::drop(device);
  state.settings = fake::parse(settings);
  state.devices.clear();
  state.counts.clear();
  state.misuses.clear();
}

FAKE_API uint64_t fake_cuda_count(const char *what) {
  fake::State &state = fake::state();
  const std::lock_guard lock(state.mutex);
  if (std::strcmp(what, "bytes") == 0) {
    uint64_t bytes = 0;
    for (const auto &[ordinal, device] : state.devices) bytes += fake::taken(device);
    return bytes;
  }
  return state.counts[what];
}

FAKE_API void fake_cuda_misuses(char *text, size_t room) {
  fake::State &state = fake::state();
  const std::lock_guard lock(state.mutex);
  std::string all;
  for (auto line = state.misuses.rbegin(); line != state.misuses.rend(); ++line) all += *line + "\n";
  if (room > 0) std::snprintf(text, room, "%s", all.c_str());
}
