#include "cli/learning.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "cli/show/verdict.h"
#include "cli/show/words.h"
#include "learn/checkpoint_directory.h"
#include "learn/truncated_json.h"

namespace linblock::cli {

namespace {

// What most people need: the others stand in --help-all.
constexpr std::array<std::string_view, 9> kCommon = {"loss",    "cost",      "bias",   "class_weight", "memory",
                                                     "threads", "tolerance", "solver", "multiclass"};

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
    for (const Setting& setting : group.settings) {
      const bool is_common = std::find(kCommon.begin(), kCommon.end(), setting.name) != kCommon.end();
      if (setting.name != without)
        command.setting(setting, group.name, is_common ? Command::Shown::always : Command::Shown::in_all);
    }
  command.offer_all_options();
  command.flag("--require-converged", "Exit with code 7 if a model did not converge", request.require_converged);
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

// Code that has run once stays mapped, and counts against the memory limit: what is still needed comes back at once.
void TrainingView::release_code() {
  constexpr double kSeconds = 0.1;
  if (since_released_.seconds() < kSeconds) return;
  release_code_pages();
  since_released_.restart();
}

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
    release_code();
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
    release_code();
    reading_.finish();
    progress_.pass(pass);
    trace_.pass(pass, test_accuracy);
    if (!quietly_) terminal.log(pass_words(pass, tasks_, test_accuracy));
  };
  return observer;
}

void say_result(const Summary& summary, const TrainRequest& request, const Terminal& terminal, double seconds) {
  terminal.say(fmt::format("{}; {} {}, {}, {} of {} used, {:.2f} s", verdict(summary, request.options.solve.tolerance),
                           grouped(static_cast<uint64_t>(summary.passes)), summary.passes == 1 ? "pass" : "passes",
                           summary.costs.bytes == 0 ? "rows in memory" : human_bytes(summary.costs.bytes) + " read",
                           human_bytes(peak_resident_bytes()), human_bytes(request.resources.memory_bytes), seconds));
  const std::string helps = advice(summary, request);
  if (!helps.empty() && !request.require_converged) terminal.say("to converge: " + helps);
}

Json summary_json(const StoreInfo& info, const Summary& summary, double pack_seconds, double total_seconds) {
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
               {"certified_gap", summary.certified() ? Json(summary.largest_gap()) : Json(nullptr)},
               {"converged", summary.converged()},
               {"termination", name_of(summary.termination)},
               {"solver", summary.plan.method_name()},
               {"plan", summary.plan.describe()}};
  if (summary.column_steps.steps > 0)
    json["full_steps"] = summary.column_steps.full_share();  // of Newton, along a feature
  add_certificates_made(summary, json);
  add_truncated(summary, json);
  return json;
}

}  // namespace linblock::cli
