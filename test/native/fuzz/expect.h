// Conditions that hold for every input; a fuzzer reports the abort with the input that led to it.
#pragma once

#include <cstdio>
#include <cstdlib>

#define EXPECT(condition)                                                            \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                  \
    }                                                                                \
  } while (0)
