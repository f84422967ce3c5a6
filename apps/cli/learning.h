// What train, cv and tune have in common on the command line: options, what a person sees meanwhile, and words.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/json.h"
#include "cli/commands/commands.h"
#include "cli/show/trace.h"
#include "cli/show/train_progress.h"
#include "cli/train_request.h"

namespace linblock::cli {

// INPUT, and everything that is said about learning and packing.
// `without`: a setting that the command has no use for.
void add_learning_options(Command& command, TrainRequest& request, Session& session, std::string_view without = {});

// Packing and training as they go on, for as long as this lives.
class TrainingView {
 public:
  // `quietly`: without the plans and passes of each of many solves.
  TrainingView(const TrainRequest& request, const Context& context, Session& session, bool quietly = false);

  TrainObserver observer();
  Trace& trace() { return trace_; }

 private:
  void release_code();

  const TrainRequest& request_;
  const Context& context_;
  Session& session_;
  bool quietly_;
  size_t tasks_ = 1;  // that are trained together, as far as the last plan says
  ProgressBar packing_;
  ProgressBar reading_;
  TrainingProgress progress_;
  Trace trace_;
  Stopwatch since_released_;
};

// Its resources. `folder` keeps the checkpoint.
Context prepare(const TrainRequest& request, const std::string& folder, Session& session);

// Says "converged: gap 0.80% (tolerance 1%); 5 passes, 1.9 GB read, 41 MB of 64 MB used, 3.20 s", and what helps a run
// that did not converge.
void say_result(const Summary& summary, const TrainRequest& request, const Terminal& terminal, double seconds);

// Saves the model; where that fails, says how it is had without training from the beginning.
void save_or_explain(const TrainRequest& request, const Team& team, TrainReport& report, const std::string& state,
                     const Terminal& terminal);

// The keys that all three share: rows, passes, bytes_read, seconds, memory, certificate, plan.
Json summary_json(const StoreInfo& info, const Summary& summary, double pack_seconds, double total_seconds);

}  // namespace linblock::cli
