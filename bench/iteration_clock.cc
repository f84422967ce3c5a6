// Preloaded into liblinear-train (LD_PRELOAD): says on stdout when things happen. Nothing of LIBLINEAR is changed, and
// neither its loading of text nor its writing of a model is counted.
//
// Each line that train() prints begins with the seconds since it was called, and when it returns a line says how long
// it took. Newton's method prints a line for each step, but never the gradient that it stops at: the last norm that it
// asked of BLAS is that gradient's, and is said too.
//
// The first iteration of a dual solver: it calls rand() for the first time where it permutes the rows, and with -e 1e6
// it prints for the first time when the iteration is over. Its set-up is not counted.
#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace {

using Clock = std::chrono::steady_clock;
using Moment = std::optional<Clock::time_point>;

Moment training;
Moment first_iteration;
bool first_said = false;
bool line_begins = true;
double last_norm = 0;

double seconds_since(const Moment& moment) { return std::chrono::duration<double>(Clock::now() - *moment).count(); }

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" int rand() noexcept {
  if (!first_iteration) first_iteration = Clock::now();
  return static_cast<int>(::random());  // the same numbers: in glibc they are one generator
}

extern "C" int fputs(const char* text, FILE* file) {
  static const auto original = next<decltype(&fputs)>("fputs");
  if (training && line_begins && *text != '\n') std::fprintf(file, "%.9f s: ", seconds_since(training));
  if (first_iteration && !first_said) {
    first_said = true;
    std::fprintf(file, "first iteration %.9f s", seconds_since(first_iteration));
  }
  const size_t length = std::strlen(text);
  if (length > 0) line_begins = text[length - 1] == '\n';
  return original(text, file);
}

// LIBLINEAR's, with pointers to its own structures.
extern "C" void* train(const void* problem, const void* parameter) {
  static const auto original = next<decltype(&train)>("train");
  training = Clock::now();
  void* const model = original(problem, parameter);
  const double seconds = seconds_since(training);
  training.reset();
  std::printf("trained in %.9f s, last norm %.9e\n", seconds, last_norm);
  return model;
}

// BLAS, in Fortran's manner.
extern "C" double dnrm2_(int* count, double* values, int* stride) {
  static const auto original = next<decltype(&dnrm2_)>("dnrm2_");
  return last_norm = original(count, values, stride);
}
