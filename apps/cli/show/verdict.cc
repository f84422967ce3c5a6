#include "cli/show/verdict.h"

#include <algorithm>
#include <cmath>

#include "base/bytes.h"

namespace linblock::cli {

namespace {

std::string reason(const Summary& summary) {
  switch (summary.termination) {
    case Termination::converged: return "";
    case Termination::pass_limit: return ", stopped by --max-passes";
    case Termination::time_limit: return ", stopped by --max-seconds";
    case Termination::interrupted: return ", interrupted";
    case Termination::stalled: return ": no further decrease is possible in double precision";
    case Termination::ended: return fmt::format(": {} does not aim at a tolerance", summary.plan.method_name());
  }
  return "";
}

// "gap 0.80% (tolerance 1%)"
std::string gap_words(const Summary& summary, double tolerance) {
  const size_t count = summary.certificates.size();
  const std::string several = count > 1 ? fmt::format(" for each of {} classifiers", grouped(count)) : "";
  return fmt::format("{}{}{} (tolerance {:g}%)", count > 1 ? "gap at most " : "gap ",
                     gap_percent(summary.largest_gap()), several, 100 * tolerance);
}

}  // namespace

std::string gap_percent(double gap) {
  if (!std::isfinite(gap)) return "not known";
  if (gap >= kLargeGap) return "over 1000%";
  const double hundredths = 100 * std::max(0.0, gap);  // rounding may give less than nothing
  return gap >= 0.001 ? fmt::format("{:.2f}%", hundredths) : fmt::format("{:.3g}%", hundredths);
}

std::string verdict(const Summary& summary, double tolerance) {
  const size_t count = summary.certificates.size();
  const std::string sum = count > 1 ? fmt::format(" (the sum of {} classifiers)", grouped(count)) : "";
  std::string words = summary.converged() ? "converged: " : "not converged: ";
  if (!summary.has_dual)
    return words + fmt::format("{} computes no bound; objective {:.6g}{}{}", summary.plan.method_name(),
                               summary.total().primal, sum, reason(summary));
  if (summary.truncate) {
    const TruncatedResult result = summary.truncated_total();
    return words + fmt::format(
                       "truncated objective {:.6g}{}, {} outliers; {} of the last convex problem{} (another "
                       "start may reach another optimum)",
                       result.objective, sum, grouped(result.outliers), gap_words(summary, tolerance), reason(summary));
  }
  return words + gap_words(summary, tolerance) + reason(summary);
}

std::string advice(const Summary& summary, const TrainRequest& request) {
  const std::string other =
      request.was_given("solver") ? "leave out --solver" : fmt::format("lower --cost (now {:g})", request.options.cost);
  switch (summary.termination) {
    case Termination::pass_limit: return summary.has_dual ? "raise --max-passes, or " + other : other;
    case Termination::time_limit: return "raise --max-seconds, or " + other;
    case Termination::stalled: return fmt::format("raise --tolerance (now {:g})", request.options.solve.tolerance);
    case Termination::ended: return "leave out --solver";
    case Termination::converged:
    case Termination::interrupted: break;
  }
  return "";
}

namespace {

// "0 for ham, 1 for spam"
std::string codes_of(const Model& model) {
  constexpr size_t kMostShown = 5;
  std::vector<int32_t> labels = model.labels;
  std::sort(labels.begin(), labels.end());
  std::string text;
  for (size_t i = 0; i < std::min(labels.size(), kMostShown); ++i)
    text += fmt::format("{}{} for {}", i == 0 ? "" : ", ", labels[i], model.label_names.show(labels[i]));
  return labels.size() > kMostShown ? text + " and so on" : text;
}

std::string liblinear_warning(const Model& model) {
  if (model.index_base == 0)
    return "liblinear-predict cannot use this model: it refuses rows whose features are counted from 0";
  if (model.normalized)
    return fmt::format("liblinear-predict does not scale rows to unit length: it gives other decision values{}",
                       model.bias > 0 ? ", and other labels" : "");
  if (model.threshold && *model.threshold != 0)
    return fmt::format("liblinear-predict does not know the decision threshold: it uses 0 instead of {:.6g}",
                       *model.threshold);
  return "";
}

}  // namespace

void say_for_liblinear(const Model& model, const Terminal& terminal) {
  if (const std::string warning = liblinear_warning(model); !warning.empty()) terminal.say("warning: " + warning);
  if (!model.label_names.empty())
    terminal.say("liblinear-predict knows labels as numbers, and with this model it writes " + codes_of(model));
}

void say_names_left_out(uint64_t count, const Terminal& terminal) {
  if (count == 0) return;
  terminal.say(fmt::format(
      "the model has no names of features: {} features with a weight have one, and a model has {} names at most, in {}",
      grouped(count), grouped(kMostModelNames), human_bytes(kMostModelNameBytes)));
}

void check_converged(const Summary& summary, const TrainRequest& request) {
  if (!request.require_converged || summary.converged()) return;
  const std::string helps = advice(summary, request);
  throw Error(ErrorKind::not_converged, "--require-converged: " + verdict(summary, request.options.solve.tolerance),
              helps.empty() ? std::vector<Remedy>{} : std::vector{Remedy{Remedy::Verb::say, {}, helps}});
}

}  // namespace linblock::cli
