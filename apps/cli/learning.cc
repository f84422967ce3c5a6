#include "cli/learning.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/bytes.h"
#include "base/file.h"
#include "base/memory.h"
#include "cli/numbers.h"
#include "cli/pack_options.h"
#include "cli/show/words.h"
#include "learn/checkpoint_directory.h"
#include "learn/truncated_json.h"

namespace linblock::cli {

namespace {

// "LABEL=WEIGHT", or "balanced".
void add_class_weight(const std::string& text, TrainOptions& options) {
  if (text == "balanced") {
    options.balanced = true;
    return;
  }
  const size_t equals = text.find('=');
  int32_t label = 0;
  double weight = 0;
  const char* const end = text.data() + text.size();
  const bool good = equals != std::string::npos &&
                    std::from_chars(text.data() + (text[0] == '+' ? 1 : 0), end, label).ptr == text.data() + equals &&
                    std::from_chars(text.data() + equals + 1, end, weight).ptr == end && weight >= 0 &&
                    std::isfinite(weight);
  if (!good) fail(ErrorKind::usage, "--class-weight '{}' is not LABEL=WEIGHT (such as 1=2.5) or balanced", text);
  options.class_weights[label] = weight;
}

template <typename Value, size_t kCount>
using Choices = std::array<std::pair<std::string_view, Value>, kCount>;

constexpr Choices<ColumnOrder, 4> kOrders = {{{"permuted", ColumnOrder::permuted},
                                              {"cyclic", ColumnOrder::cyclic},
                                              {"once", ColumnOrder::once},
                                              {"online", ColumnOrder::online}}};
constexpr Choices<Exponential, 4> kExponentials = {{{"auto", Exponential::automatic},
                                                    {"stored", Exponential::stored},
                                                    {"fast", Exponential::fast},
                                                    {"library", Exponential::library}}};

template <typename Value, size_t kCount>
Value choice_of(const std::string& text, const char* option, const Choices<Value, kCount>& choices) {
  std::string names;
  for (size_t i = 0; i < kCount; ++i) {
    if (choices[i].first == text) return choices[i].second;
    names += fmt::format("{}{}", i == 0 ? "" : i + 1 == kCount ? " or " : ", ", choices[i].first);
  }
  fail(ErrorKind::usage, "{} '{}' is not {}", option, text, names);
}

// "certified within 0.8% of the best possible objective, each of 4 classifiers"
std::string certified_words(const Summary& summary) {
  const Certificate certificate = summary.total();
  const size_t count = summary.certificates.size();
  const std::string each = count > 1 ? fmt::format(", each of {} classifiers", grouped(count)) : "";
  const std::string sum = count > 1 ? fmt::format(" (the sum of {} classifiers)", grouped(count)) : "";
  if (!summary.has_dual)
    return fmt::format("objective {:.6g}{}, not certified (pegasos has no dual)", certificate.primal, sum);
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

void add_learning_options(CLI::App& app, const std::shared_ptr<TrainRequest>& request, Session& session) {
  CLI::App* const command = &app;
  TrainOptions& options = request->options;
  command->add_option("INPUT", options.inputs, "svmlight text (packed first), or a store")->required()->type_name("");
  command
      ->add_option_function<std::string>(
          "--loss", [&options](const std::string& name) { options.loss = loss_of(name); },
          "hinge, squared-hinge or logistic (default: squared-hinge)")
      ->type_name("LOSS");
  add_positive_number(*command, "--cost", options.cost, "How much the loss counts against |w|^2 / 2 (default: 1)");
  command
      ->add_option_function<std::string>(
          "--truncate",
          [&options](const std::string& text) {
            options.truncate.reset();
            if (text != "none") options.truncate = number_from_0(text, "--truncate");
          },
          "For wrong labels: no row's loss counts as more than 1 + S, such as 1 (default: none, all of it counts; "
          "indexed: 1)")
      ->type_name("S");
  command
      ->add_option_function<std::string>(
          "--bias", [&options](const std::string& text) { options.bias = positive_number(text, "--bias"); },
          "Add a constant feature of this value (default: none)")
      ->type_name("B");
  command
      ->add_option("--multiclass", request->multiclass,
                   "one-vs-rest, or crammer-singer: all classes at once (default: one-vs-rest)")
      ->type_name("NAME");
  command
      ->add_option_function<std::string>(
          "--positive",
          [&options](const std::string& text) { options.positive = whole_number<int32_t>(text, "--positive"); },
          "This label against all others")
      ->type_name("LABEL");
  command
      ->add_option_function<std::vector<std::string>>(
          "--class-weight",
          [&options](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) add_class_weight(text, options);
          },
          "Multiply the cost of a label's rows: LABEL=W (repeatable), or balanced")
      ->type_name("LABEL=W");
  add_memory_option(*command, request->memory_bytes);
  add_threads_option(*command, request->threads);
  add_positive_number(*command, "--tolerance", options.solve.tolerance,
                      "Stop at this relative duality gap, certified (default: 0.01)");
  add_whole_number(*command, "--max-passes", options.solve.max_passes, "Stop after N passes (default: 1000)", 1);
  add_positive_number(*command, "--max-seconds", options.solve.max_seconds, "Stop after so many seconds");
  add_whole_number(*command, "--seed", options.solve.seed, "Of everything random (default: 1)");
  command
      ->add_option("--solver", request->solver,
                   "dual, newton, primal, cmls, indexed, pegasos, average or subsample (default: chosen from the data)")
      ->type_name("NAME");
  command
      ->add_option_function<std::string>(
          "--step",
          [request](const std::string& text) {
            const std::optional<StepRows> step = StepRows::read(text);
            if (!step) fail(ErrorKind::usage, "--step '{}' is not block, row or a number of rows", text);
            request->pegasos.step = *step;
          },
          "pegasos: rows a step: block, row or N (default: row)")
      ->type_name("N");
  command
      ->add_option_function<std::string>(
          "--order",
          [request](const std::string& name) {
            request->primal.order = choice_of(name, "--order", kOrders);
            request->order = request->primal.order;
          },
          "primal, cmls: of the features: permuted, cyclic, once or online (default: permuted; cmls: cyclic)")
      ->type_name("NAME");
  command
      ->add_option_function<std::string>(
          "--exponential",
          [request](const std::string& name) {
            request->primal.exponential = choice_of(name, "--exponential", kExponentials);
          },
          "primal with --loss logistic: auto, stored, fast or library (default: auto)")
      ->type_name("NAME");
  add_whole_number(*command, "--query", request->indexed.query,
                   "indexed: rows that a query of the index is to find (default: 1000)", 1);
  command
      ->add_option_function<std::string>(
          "--block-solver",
          [request](const std::string& name) {
            if (name != "dual" && name != "newton")
              fail(ErrorKind::usage, "--block-solver '{}' is not dual or newton", name);
            request->indexed.block_solver = name == "newton" ? BlockSolver::newton : BlockSolver::dual;
          },
          "indexed: dual, or newton, with --loss squared-hinge (default: dual)")
      ->type_name("NAME");
  command
      ->add_option_function<std::string>(
          "--schedule",
          [request](const std::string& name) {
            if (name != "recomposed" && name != "fixed")
              fail(ErrorKind::usage, "--schedule '{}' is not recomposed or fixed", name);
            request->dual.schedule = name == "fixed" ? Schedule::fixed : Schedule::recomposed;
          },
          "dual: recomposed, new blocks each pass, or fixed, always the same (default: recomposed)")
      ->type_name("NAME");
  command
      ->add_option_function<std::string>(
          "--blocks",
          [request](const std::string& text) { request->dual.blocks = whole_number<size_t>(text, "--blocks", 1); },
          "With --schedule fixed: how many")
      ->type_name("M");
  command
      ->add_option_function<std::string>(
          "--inner",
          [request](const std::string& text) {
            const std::optional<InnerIterations> inner = InnerIterations::read(text);
            if (!inner) fail(ErrorKind::usage, "--inner '{}' is not a number of rounds, auto or converge", text);
            request->dual.inner = *inner;
          },
          "dual: rounds over each block: N, auto or converge (default: auto)")
      ->type_name("N");
  command
      ->add_option_function<std::string>(
          "--block-order",
          [request](const std::string& name) {
            if (name != "permuted" && name != "sequential")
              fail(ErrorKind::usage, "--block-order '{}' is not permuted or sequential", name);
            request->dual.block_order = name == "permuted" ? BlockSequence::permuted : BlockSequence::sequential;
          },
          "With --schedule fixed: permuted or sequential (default: permuted)")
      ->type_name("NAME");
  command
      ->add_option_function<std::string>(
          "--cache-fraction",
          [request](const std::string& text) {
            if (text == "auto") return request->dual.cache_fraction.reset();
            double share = 0;
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), share);
            if (error != std::errc() || end != text.data() + text.size() || !(share >= 0 && share < 1))
              fail(ErrorKind::usage, "--cache-fraction '{}' is not auto or a number from 0 to below 1", text);
            request->dual.cache_fraction = share;
          },
          "dual: of the memory for rows, for rows near the margin: F or auto (default: auto)")
      ->type_name("F");
  command->add_option("--store", options.store, "Where text is packed (default: INPUT.linblock)")->type_name("DIR");
  add_text_options(*command, options.pack);
  add_packing_options(*command, options.pack);
  command
      ->add_option("--checkpoint", request->checkpoint,
                   "Where to keep what a resumed run needs (default: beside the model or the store)")
      ->type_name("DIR");
  add_number(*command, "--checkpoint-seconds", request->checkpoint_seconds, "How often (default: 10)");
  command->add_flag("--fresh", options.fresh, "Begin anew, whatever a checkpoint says");
  add_json_option(*command, session);
  add_quiet_option(*command, session);
}

Context prepare(TrainRequest& request, const std::string& folder, Session& session) {
  request.options.pack.memory_bytes = request.memory_bytes;
  request.options.pack.threads = request.threads;
  const std::optional<AnyMethod> method = method_of(request);
  request.options.choose_method = !method.has_value();
  if (method) request.options.solve.method = *method;
  if (all_classes_at_once(request)) request.options.loss = Hinge{};
  Context context{.memory_bytes = request.memory_bytes, .threads = request.threads, .stop = &session.stop};
  context.checkpoint.path = fmt::format("{}/{}", folder, kCheckpointName);
  context.checkpoint.every_seconds = request.checkpoint_seconds;
  return context;
}

Watching::Watching(const TrainRequest& request, const Context& context, Session& session, bool quietly)
    : request_(request),
      context_(context),
      session_(session),
      quietly_(quietly),
      packing_(session.terminal, "packing"),
      reading_(session.terminal, "reading"),
      progress_(session.terminal, request.options.solve.tolerance),
      trace_(request.trace) {}

TrainObserver Watching::observer() {
  const Terminal& terminal = session_.terminal;
  TrainObserver observer;
  observer.say = [&](const std::string& sentence) { terminal.say(in_flags(sentence)); };
  observer.packing.stop = &session_.stop;
  observer.packing.observer = [&](const PackProgress& done) {
    packing_.update(done.bytes_read, done.total_bytes, grouped(done.rows) + " rows");
  };
  observer.plan = [&](const Plan& plan) {
    packing_.finish();
    tasks_ = plan.tasks;
    progress_.begin(plan.tasks);
    if (!quietly_) terminal.say("plan: " + plan.describe());
    if (!request_.dry_run)
      trace_.begin(session_.command, request_.options, plan, request_.memory_bytes,
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
                 {"total", total_seconds}}},
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
