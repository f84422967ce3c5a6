#include "cli/learning.h"

#include <array>
#include <cmath>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "cli/show/words.h"
#include "learn/checkpoint_directory.h"
#include "learn/truncated_json.h"

namespace linblock::cli {

namespace {

// "certified within 0.8% of the best possible objective, each of 4 classifiers"
std::string certified_words(const Summary& summary) {
  const Certificate certificate = summary.total();
  const size_t count = summary.certificates.size();
  const std::string each = count > 1 ? fmt::format(", each of {} classifiers", grouped(count)) : "";
  const std::string sum = count > 1 ? fmt::format(" (the sum of {} classifiers)", grouped(count)) : "";
  if (!summary.has_dual)
    return fmt::format("objective {:.6g}{}, not certified (this solver has no dual)", certificate.primal, sum);
  const double gap = summary.largest_gap();
  if (!std::isfinite(gap)) return "nothing is certified yet";
  if (summary.truncate) {
    const TruncatedResult result = summary.truncated_total();
    return fmt::format(
        "truncated objective {:.6g}{}, {} outliers; certified: the last convex problem, within {} of its best possible "
        "objective{} (truncated losses are not convex: another start may end elsewhere)",
        result.objective, sum, grouped(result.outliers), gap_percent(gap), each);
  }
  if (gap > kLarge)
    return fmt::format("far from done: the objective may still fall to a {:.0f}th of what it is{}", 1 + gap,
                       count > 1 ? fmt::format(", in the worst of {} classifiers", grouped(count)) : "");
  return fmt::format("certified within {} of the best possible objective{}", gap_percent(gap), each);
}

std::string termination_words(Termination termination) {
  switch (termination) {
    case Termination::converged: return "";
    case Termination::pass_limit: return " (stopped at --max-passes)";
    case Termination::time_limit: return " (stopped at --max-seconds)";
    case Termination::interrupted: return " (interrupted)";
    case Termination::stalled: return " (no step makes it better: the limit of double precision)";
  }
  return "";
}

// Of several tasks the estimates are those of all.
std::string progress_words(const PassReport& pass, size_t tasks) {
  if (pass.truncated)
    return fmt::format("{} {:.6g}, {} outliers,",
                       tasks > 1 ? fmt::format("sum of {} truncated objectives", tasks) : "truncated objective",
                       pass.truncated->objective, grouped(pass.truncated->outliers));
  // Not all rows were looked at: nothing is known of the objective.
  if (pass.active_rows > 0 && !std::isfinite(pass.primal_estimate))
    return fmt::format("{} rows near the margin so far, looking for more,", grouped(pass.active_rows));
  const Estimate known{.objective = pass.primal_estimate, .gap = pass.gap_estimate(), .tasks = tasks};
  return fmt::format("{:<{}} ", known.words(), tasks > 1 ? 56 : 38);
}

// The certificate is that of the worst of those tasks that were due.
std::string pass_words(const PassReport& pass, size_t tasks, std::optional<double> test_accuracy) {
  std::string words = fmt::format("pass {:>3}  {} {:.1f} s", pass.pass, progress_words(pass, tasks), pass.seconds);
  if (pass.certified && tasks == 1) words += fmt::format("  certified {}", gap_percent(pass.certified->gap()));
  if (pass.certified && tasks > 1)
    words += fmt::format("  certified up to {}, {} of {} done", gap_percent(pass.certified->gap()),
                         tasks - pass.tasks_left, tasks);
  if (test_accuracy) words += fmt::format("  test accuracy {}", percent(*test_accuracy));
  return words;
}

}  // namespace

void add_learning_options(Command& command, TrainRequest& request, Session& session, std::string_view without) {
  command.arguments("INPUT", "svmlight text (packed first), or a store", request.options.inputs);
  for (const SettingGroup& group : learn_settings(request))
    for (const Setting& setting : group.settings)
      if (setting.name != without) command.setting(setting, group.name);
  add_json_option(command, session);
  add_quiet_option(command, session);
}

Context prepare(const TrainRequest& request, const std::string& folder, Session& session) {
  Context context{
      .memory_bytes = request.resources.memory_bytes, .team = request.resources.threads, .stop = &session.stop};
  context.checkpoint.path = fmt::format("{}/{}", folder, kCheckpointName);
  context.checkpoint.every_seconds = request.checkpoint.seconds;
  return context;
}

TrainingView::TrainingView(const TrainRequest& request, const Context& context, Session& session, bool quietly)
    : request_(request),
      context_(context),
      session_(session),
      quietly_(quietly),
      packing_(session.terminal, "packing"),
      reading_(session.terminal, "reading"),
      progress_(session.terminal, request.options.solve.tolerance),
      trace_(request.trace) {}

TrainObserver TrainingView::observer() {
  const Terminal& terminal = session_.terminal;
  TrainObserver observer;
  observer.say = [&](const std::string& sentence) { terminal.say(in_flags(sentence)); };
  observer.packing.stop = &session_.stop;
  observer.packing.observer = [&](const PackProgress& done) {
    packing_.update(done.bytes_read, done.total_bytes, grouped(done.rows) + " rows");
  };
  observer.plan = [&](const Plan& plan) {
    packing_.finish();
    release_code_pages();  // parsing and packing are over
    tasks_ = plan.tasks;
    progress_.begin(plan.tasks);
    if (!quietly_) terminal.say("plan: " + plan.describe());
    if (!request_.dry_run)
      trace_.begin(session_.command, request_.options, plan, request_.resources.memory_bytes,
                   path_kind(context_.checkpoint.path) == PathKind::file);
  };
  observer.block = [&](const BlockReport& block) {
    progress_.block(block);
    trace_.block(block);
  };
  observer.reading = [&](std::string_view purpose, double share) {
    packing_.finish();
    progress_.finish();
    reading_.show(share, std::string(purpose));
    if (share >= 1) reading_.finish();
  };
  observer.pass = [&](const PassReport& pass, std::optional<double> test_accuracy) {
    reading_.finish();
    progress_.pass(pass);
    trace_.pass(pass, test_accuracy);
    if (!quietly_) terminal.say(pass_words(pass, tasks_, test_accuracy));
  };
  return observer;
}

std::string summary_words(const Summary& summary, uint64_t memory_bytes, double seconds) {
  return fmt::format("{}{}; {} {}, {}, {} of {} used, {:.2f} s", certified_words(summary),
                     termination_words(summary.termination), grouped(static_cast<uint64_t>(summary.passes)),
                     summary.passes == 1 ? "pass" : "passes",
                     summary.costs.bytes == 0 ? "rows in memory" : human_bytes(summary.costs.bytes) + " read",
                     human_bytes(peak_resident_bytes()), human_bytes(memory_bytes), seconds);
}

Json summary_json(const StoreInfo& info, const Summary& summary, double pack_seconds, double total_seconds) {
  constexpr std::array<const char*, 5> kTerminations = {"converged", "pass_limit", "time_limit", "interrupted",
                                                        "stalled"};
  const Certificate certificate = summary.total();
  Json json = {{"rows", info.rows},
               {"features", info.features()},
               {"nonzeros", info.nonzeros},
               {"passes", summary.passes},
               {"bytes_read", summary.costs.bytes},
               {"seconds",
                {{"pack", pack_seconds},
                 {"read", summary.costs.read_seconds},
                 {"decode", summary.costs.decode_seconds},
                 {"wait", summary.costs.wait_seconds},
                 {"solve", summary.solve_seconds},
                 {"certify", summary.certify_seconds},
                 {"total", total_seconds},
                 {"processor", processor_seconds()}}},
               {"peak_memory_bytes", peak_resident_bytes()},
               {"primal", certificate.primal},
               {"dual", summary.certified() ? Json(certificate.dual) : Json(nullptr)},
               {"gap", summary.certified() ? Json(summary.largest_gap()) : Json(nullptr)},
               {"certified", summary.certified()},
               {"termination", kTerminations[static_cast<size_t>(summary.termination)]},
               {"solver", summary.plan.method_name()},
               {"plan", summary.plan.describe()}};
  if (summary.column_steps.steps > 0)
    json["full_steps"] = summary.column_steps.full_share();  // of Newton, along a feature
  add_truncated(summary, json);
  return json;
}

}  // namespace linblock::cli
