// Runs that are stopped after every block, as Ctrl-C does, and taken up again in a new solve.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.h"
#include "solve/solve.h"

namespace linblock::test {

struct StoppedRun {
  Summary summary;
  std::vector<Solution> solutions;
  double last_estimate = 0;  // of the primal, which adds up over a pass and its stops
  int stops = 0;
};

enum class Death {
  stop,   // as told, with a checkpoint
  crash,  // at once: what was not saved is lost
};

// One life: until `blocks` blocks are done, or to the end. True: it ended by itself.
inline bool live(const Problem& problem, const SolveOptions& options, Context context, int blocks, StoppedRun& run,
                 Death death = Death::stop) {
  struct Crash {};
  std::atomic<bool> stop = false;
  context.stop = &stop;
  context.observer.block = [&](const BlockReport&) {
    if (--blocks != 0) return;
    if (death == Death::crash) throw Crash();
    stop = true;
  };
  context.observer.pass = [&](const PassReport& pass) { run.last_estimate = pass.primal_estimate; };
  run.solutions.clear();
  try {
    run.summary = solve(problem, options, run.solutions, context);
    return true;
  } catch (const Crash&) {
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::interrupted) << error.what();
    if (error.kind() != ErrorKind::interrupted) throw;
  }
  ++run.stops;
  return false;
}

// From where the checkpoint of `context` stands, or from the beginning; a stop after every block.
inline StoppedRun run_with_stops(const Problem& problem, const SolveOptions& options, const Context& context) {
  StoppedRun run;
  while (!live(problem, options, context, 1, run)) {
    if (run.stops > 10000) throw std::runtime_error("it does not come any farther");
  }
  return run;
}

}  // namespace linblock::test
