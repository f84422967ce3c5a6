// Preloaded into liblinear-train (LD_PRELOAD): says on stdout how long its first iteration took. Its dual solvers call
// rand() for the first time where they permute the rows for that iteration, and with -e 1e6 they print for the first
// time when it is over. Nothing of LIBLINEAR is changed, and neither its loading nor its set-up is counted.
#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>

namespace {

using Clock = std::chrono::steady_clock;
std::optional<Clock::time_point> begin;
bool said = false;

}  // namespace

extern "C" int rand() noexcept {
  if (!begin) begin = Clock::now();
  return static_cast<int>(::random());  // the same numbers: in glibc they are one generator
}

extern "C" int fputs(const char* text, FILE* file) {
  static const auto original = reinterpret_cast<decltype(&fputs)>(::dlsym(RTLD_NEXT, "fputs"));
  if (begin && !said) {
    said = true;
    std::fprintf(file, "first iteration %.9f s", std::chrono::duration<double>(Clock::now() - *begin).count());
  }
  return original(text, file);
}
