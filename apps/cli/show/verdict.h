// How a run ended, in words: converged or not, the gap, the reason, and what helps this run.
#pragma once

#include <string>

#include "cli/show/terminal.h"
#include "cli/train_request.h"
#include "learn/model.h"

namespace linblock::cli {

inline constexpr double kLargeGap = 10;  // from here on its size tells nothing

std::string gap_percent(double gap);

// "converged: gap 0.80% (tolerance 1%)", "not converged: gap 12.4% (tolerance 1%), stopped by --max-passes"
std::string verdict(const Summary& summary, double tolerance);

// "raise --max-passes, or leave out --solver"; empty if the run converged.
std::string advice(const Summary& summary, const TrainRequest& request);

// What liblinear-predict does not know of this model, which is saved as text.
void say_for_liblinear(const Model& model, const Terminal& terminal);
// `count`: what save_model returns.
void say_names_left_out(uint64_t count, const Terminal& terminal);

// With --require-converged: throws ErrorKind::not_converged if the run did not converge.
void check_converged(const Summary& summary, const TrainRequest& request);

}  // namespace linblock::cli
