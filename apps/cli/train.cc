#include "learn/train.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/file.h"
#include "base/memory.h"
#include "cli/pack_options.h"
#include "cli/trace.h"
#include "cli/train_progress.h"
#include "cli/train_request.h"

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

double positive_number(const std::string& text, const char* option) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !(number > 0) || !std::isfinite(number))
    fail(ErrorKind::usage, "{} '{}' is not a number above 0", option, text);
  return number;
}

void add_number(CLI::App& command, const std::string& name, double& number, const std::string& help) {
  command
      .add_option_function<std::string>(
          name, [&number, name](const std::string& text) { number = positive_number(text, name.c_str()); }, help)
      ->type_name("X");
}

// "within 0.8% of the best possible objective"
std::string certified_words(const Summary& summary) {
  const Certificate certificate = summary.total();
  if (!summary.certified)
    return fmt::format("objective {:.6g}, not certified (pegasos has no dual)", certificate.primal);
  const double gap = summary.largest_gap();
  if (!std::isfinite(gap)) return "nothing is certified yet";
  if (gap > 10) return fmt::format("far from done: the objective may still fall to a {:.0f}th of what it is", 1 + gap);
  return fmt::format("certified within {} of the best possible objective", TrainingProgress::percent(gap));
}

std::string termination_words(Termination termination) {
  switch (termination) {
    case Termination::converged: return "";
    case Termination::pass_limit: return " (stopped at --max-passes)";
    case Termination::time_limit: return " (stopped at --max-seconds)";
    case Termination::interrupted: return " (interrupted)";
  }
  return "";
}

void print_json(const TrainOptions& options, const TrainReport& report, double total_seconds,
                const std::optional<TestResult>& test) {
  constexpr std::array<const char*, 4> kTerminations = {"converged", "pass_limit", "time_limit", "interrupted"};
  const Summary& summary = report.summary;
  const Certificate certificate = summary.total();
  nlohmann::ordered_json json = {{"rows", report.info.rows},
                                 {"features", report.info.features()},
                                 {"nonzeros", report.info.nonzeros},
                                 {"passes", summary.passes},
                                 {"bytes_read", summary.costs.bytes},
                                 {"seconds",
                                  {{"pack", report.pack_seconds},
                                   {"read", summary.costs.read_seconds},
                                   {"decode", summary.costs.decode_seconds},
                                   {"wait", summary.costs.wait_seconds},
                                   {"solve", summary.solve_seconds},
                                   {"certify", summary.certify_seconds},
                                   {"total", total_seconds}}},
                                 {"peak_memory_bytes", peak_resident_bytes()},
                                 {"primal", certificate.primal},
                                 {"dual", summary.certified ? nlohmann::ordered_json(certificate.dual) : nullptr},
                                 {"gap", summary.certified ? nlohmann::ordered_json(summary.largest_gap()) : nullptr},
                                 {"certified", summary.certified},
                                 {"termination", kTerminations[static_cast<size_t>(summary.termination)]},
                                 {"solver", name_of(options.solve.method)},
                                 {"plan", summary.plan.describe()}};
  if (test) json["test"] = {{"accuracy", test->accuracy()}, {"rows", test->rows}};
  fmt::print("{}\n", json.dump());
}

std::string pass_words(const PassReport& pass, std::optional<double> test_accuracy) {
  std::string words = fmt::format("pass {:>3}  objective {:<12.6g} gap about {:<9} {:.1f} s", pass.pass,
                                  pass.primal_estimate, TrainingProgress::percent(pass.gap_estimate()), pass.seconds);
  if (pass.certified) words += fmt::format("  certified {}", TrainingProgress::percent(pass.certified->gap()));
  if (test_accuracy) words += fmt::format("  test accuracy {:.2f}%", 100 * *test_accuracy);
  return words;
}

// Made before the run, which keeps its state in it; gone afterwards where there is none.
class CheckpointFolder {
 public:
  explicit CheckpointFolder(const std::string& path) : path_(path) {
    if (path_kind(path) == PathKind::absent) make_directory(path);
  }
  ~CheckpointFolder() { remove_empty_directory(path_); }
  CheckpointFolder(const CheckpointFolder&) = delete;
  CheckpointFolder& operator=(const CheckpointFolder&) = delete;

 private:
  std::string path_;
};

// What was trained is not lost with the disk that is full: it says how it is had without training from the beginning.
void save(const TrainRequest& request, TrainReport& report, const std::string& state) {
  try {
    save_trained(request.model, request.options, report, request.threads);
  } catch (const Error& error) {
    try {
      remove_file(request.model + ".new");
    } catch (const Error&) {
      // The first error is the one to tell of.
    }
    throw Error(error.kind(),
                fmt::format("{}\nThe model could not be saved: afterwards the same command {}", error.what(),
                            path_kind(state) == PathKind::file ? "goes on from its checkpoint" : "trains it again"));
  }
}

void run_train(TrainRequest& request, const CLI::App& command, Session& session) {
  const Terminal& terminal = session.terminal;
  const Stopwatch clock;
  TrainOptions& options = request.options;
  options.pack.memory_bytes = request.memory_bytes;
  options.pack.threads = request.threads;
  check_request(request, command);
  options.solve.method = method_of(request);
  if (all_classes_at_once(request)) options.loss = Hinge{};
  const std::string checkpoint = request.checkpoint_folder();
  Context context{.memory_bytes = request.memory_bytes, .threads = request.threads, .stop = &session.stop};
  context.checkpoint.path = checkpoint + "/STATE";
  context.checkpoint.every_seconds = request.checkpoint_seconds;
  ProgressBar packing(terminal, "packing");
  TrainingProgress progress(terminal, options.solve.tolerance);
  Trace trace(request.trace);
  TrainObserver observer;
  observer.say = [&](const std::string& sentence) { terminal.say(sentence); };
  observer.packing.stop = &session.stop;
  observer.packing.observer = [&](const PackProgress& done) {
    packing.update(done.bytes_read, done.total_bytes, grouped(done.rows) + " rows");
  };
  observer.plan = [&](const Plan& plan) {
    packing.finish();
    terminal.say("plan: " + plan.describe());
    if (!request.dry_run)
      trace.begin(options, plan, request.memory_bytes, path_kind(context.checkpoint.path) == PathKind::file);
  };
  observer.block = [&](const BlockReport& block) {
    progress.block(block);
    trace.block(block);
  };
  observer.pass = [&](const PassReport& pass, std::optional<double> test_accuracy) {
    progress.pass(pass);
    trace.pass(pass, test_accuracy);
    terminal.say(pass_words(pass, test_accuracy));
  };
  std::optional<CheckpointFolder> folder;
  if (!request.dry_run) folder.emplace(checkpoint);
  TrainReport report = train(options, context, observer, request.dry_run);
  if (request.dry_run) return;
  save(request, report, context.checkpoint.path);
  remove_flat_directory(checkpoint);
  const std::optional<TestResult>& tested = report.test;
  const double seconds = clock.seconds();
  const Summary& summary = report.summary;
  trace.end(summary, seconds, tested ? std::optional(tested->accuracy()) : std::nullopt);
  terminal.say(fmt::format("{}{}; {} {}, {} read, {} of {} used, {:.2f} s", certified_words(summary),
                           termination_words(summary.termination), summary.passes,
                           summary.passes == 1 ? "pass" : "passes", human_bytes(summary.costs.bytes),
                           human_bytes(peak_resident_bytes()), human_bytes(request.memory_bytes), seconds));
  if (tested)
    terminal.say(fmt::format("test accuracy {:.2f}% ({} rows)", 100 * tested->accuracy(), grouped(tested->rows)));
  if (session.json) print_json(options, report, seconds, tested);
  terminal.say(fmt::format("next: linblock predict {} DATA.svm", request.model));
}

}  // namespace

void add_train(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand("train", "Train a linear classifier to a certified optimum");
  auto request = std::make_shared<TrainRequest>();
  TrainOptions& options = request->options;
  command->add_option("INPUT", options.inputs, "svmlight text (packed first), or a store")->required()->type_name("");
  command->add_option("-o,--output", request->model, "The model to write")->required()->type_name("MODEL");
  command->add_option("--test", options.test, "Text or a store to test on, after each pass and at the end")
      ->type_name("INPUT")
      ->expected(1);
  command->add_option("--trace", request->trace, "Write what each block and pass took and reached, as lines of JSON")
      ->type_name("FILE");
  command
      ->add_option_function<std::string>(
          "--loss", [&options](const std::string& name) { options.loss = loss_of(name); },
          "hinge, squared-hinge or logistic (default: squared-hinge)")
      ->type_name("LOSS");
  add_number(*command, "--cost", options.cost, "How much the loss counts against |w|^2 / 2 (default: 1)");
  command
      ->add_option_function<std::string>(
          "--bias", [&options](const std::string& text) { options.bias = positive_number(text, "--bias"); },
          "Add a constant feature of this value (default: none)")
      ->type_name("B");
  command
      ->add_option("--multiclass", request->multiclass,
                   "one-vs-rest, or crammer-singer: all classes at once (default: one-vs-rest)")
      ->type_name("NAME");
  command->add_option("--positive", options.positive, "This label against all others")->type_name("LABEL");
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
  add_number(*command, "--tolerance", options.solve.tolerance,
             "Stop at this relative duality gap, certified (default: 0.01)");
  command
      ->add_option_function<std::string>(
          "--max-passes",
          [&options](const std::string& text) {
            int& passes = options.solve.max_passes;
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), passes);
            if (error != std::errc() || end != text.data() + text.size() || passes < 1)
              fail(ErrorKind::usage, "--max-passes '{}' is not a whole number from 1 to {}", text,
                   std::numeric_limits<int>::max());
          },
          "Stop after N passes (default: 1000)")
      ->type_name("N");
  add_number(*command, "--max-seconds", options.solve.max_seconds, "Stop after so many seconds");
  command->add_option("--seed", options.solve.seed, "Of everything random (default: 1)")->type_name("N");
  command->add_option("--solver", request->solver, "dual, pegasos, average or subsample (default: dual)")
      ->type_name("NAME");
  command
      ->add_option_function<std::string>(
          "--step",
          [request](const std::string& text) {
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), request->pegasos.step);
            if (text == "block") {
              request->pegasos.step = 0;
            } else if (text == "row") {
              request->pegasos.step = 1;
            } else if (error != std::errc() || end != text.data() + text.size() || request->pegasos.step < 1) {
              fail(ErrorKind::usage, "--step '{}' is not block, row or a number of rows", text);
            }
          },
          "pegasos: rows a step: block, row or N (default: row)")
      ->type_name("N");
  command
      ->add_option_function<std::string>(
          "--schedule",
          [request](const std::string& name) {
            if (name != "recomposed" && name != "fixed")
              fail(ErrorKind::usage, "--schedule '{}' is not recomposed or fixed", name);
            request->dual.schedule = name == "fixed" ? Schedule::fixed : Schedule::recomposed;
          },
          "recomposed: new blocks each pass; fixed: the same (default: recomposed)")
      ->type_name("NAME");
  command->add_option("--blocks", request->dual.blocks, "With --schedule fixed: how many")->type_name("M");
  command
      ->add_option_function<std::string>(
          "--inner",
          [request](const std::string& text) {
            request->dual.converge = text == "converge";
            request->dual.inner = 0;
            if (text == "auto" || text == "converge") return;
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), request->dual.inner);
            if (error != std::errc() || end != text.data() + text.size() || request->dual.inner < 1)
              fail(ErrorKind::usage, "--inner '{}' is not a number of rounds, auto or converge", text);
          },
          "Rounds over each block: N, auto or converge (default: auto)")
      ->type_name("N");
  command
      ->add_option_function<std::string>(
          "--block-order",
          [request](const std::string& name) {
            if (name != "permuted" && name != "sequential")
              fail(ErrorKind::usage, "--block-order '{}' is not permuted or sequential", name);
            request->dual.sequence = name == "permuted" ? BlockSequence::permuted : BlockSequence::sequential;
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
          "Of the memory for rows, for rows near the margin: F or auto (default: auto)")
      ->type_name("F");
  command->add_option("--store", options.store, "Where text is packed (default: INPUT.linblock)")->type_name("DIR");
  add_text_options(*command, options.pack);
  add_packing_options(*command, options.pack);
  command
      ->add_option("--checkpoint", request->checkpoint,
                   "Where to keep what a resumed run needs (default: MODEL.checkpoint)")
      ->type_name("DIR");
  command->add_option("--checkpoint-seconds", request->checkpoint_seconds, "How often (default: 10)")->type_name("X");
  command->add_flag("--fresh", options.fresh, "Begin anew, whatever a checkpoint says");
  command->add_flag("--dry-run", request->dry_run, "Show the plan and stop");
  add_json_option(*command, session);
  command->add_flag_callback(
      "-q,--quiet", [&session] { session.terminal.set_quiet(true); }, "Say nothing but errors");
  add_examples(*command,
               "  linblock train train.svm -o model\n"
               "  linblock train train.store -o model --loss hinge --cost 0.5 --memory 64M --tolerance 0.001\n"
               "  linblock train train.svm -o model --test test.svm --class-weight balanced");
  command->callback([request, command, &session] { run_train(*request, *command, session); });
}

}  // namespace linblock::cli
