#include "learn/train.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "learn/examples.h"
#include "learn/stages.h"
#include "learn/test_rows.h"
#include "solve/run.h"

namespace linblock {

namespace {

using Json = nlohmann::ordered_json;

// What one group adds to the whole.
void add_summary(const Summary& part, Summary& whole) {
  if (whole.certificates.empty()) whole.plan = part.plan;
  whole.termination = std::max(whole.termination, part.termination);
  whole.certified = part.certified;
  whole.passes += part.passes;
  whole.certificates.insert(whole.certificates.end(), part.certificates.begin(), part.certificates.end());
  whole.costs += part.costs;
  whole.solve_seconds += part.solve_seconds;
  whole.certify_seconds += part.certify_seconds;
  whole.total_seconds += part.total_seconds;
}

// Groups of tasks, one after another; one group where all of them fit the memory.
class Training {
 public:
  Training(const TrainOptions& options, const Context& context, const TrainObserver& observer, const Store& store)
      : options_(options),
        context_(watched(context, observer)),
        observer_(observer),
        store_(store),
        classes_(choose_classes(store.info(), options)),
        problem_(make_problem(store, options, classes_)),
        test_(options, store, classes_, context) {
    context_.reserved_bytes += test_.reserved_bytes();
    const size_t count = problem_.tasks.size();
    const size_t most = tasks_at_once(problem_, options.solve, context_);
    groups_ = (count + most - 1) / most;
    if (groups_ > 1)
      observer.say(fmt::format("{} classes do not fit the memory together: {} groups of up to {}, one after another",
                               count, groups_, (count + groups_ - 1) / groups_));
  }

  Plan plan() const { return make_plan(group(0), options_.solve, context_); }

  void run(TrainReport& report) {
    Stages stages(context_.checkpoint, identity_of(options_, context_, store_.info()), options_.fresh);
    if (stages.resumed()) observer_.say("going on from the checkpoint '" + context_.checkpoint.path + "'");
    report.groups = groups_;
    if (groups_ > 1) {
      if (!context_.checkpoint.wanted())
        fail(ErrorKind::memory, "{} classes do not fit the memory together, and there is no checkpoint to keep some in",
             problem_.tasks.size());
      report.columns = Columns(context_.checkpoint.path + ".column");
    }
    if (stages.left() != nullptr) take_up(*stages.left(), report);
    for (size_t number = stages.done(); number < groups_; ++number) {
      train_group(number, stages.checkpoint(), report);
      if (groups_ > 1) stages.finish([&](SnapshotWriter& to) { save(to, report); });
    }
    if (test_.wanted() && groups_ > 1) report.test = test_.result();
  }

  const Classes& classes() const { return classes_; }

 private:
  size_t first_of(size_t number) const { return number * problem_.tasks.size() / groups_; }

  Problem group(size_t number) const {
    Problem part = problem_;
    part.tasks.assign(problem_.tasks.begin() + static_cast<ptrdiff_t>(first_of(number)),
                      problem_.tasks.begin() + static_cast<ptrdiff_t>(first_of(number + 1)));
    return part;
  }

  void train_group(size_t number, const Checkpoint& checkpoint, TrainReport& report) {
    const Problem problem = group(number);
    Context context = context_;
    context.checkpoint = checkpoint;
    context.observer = [&](const PassReport& pass) {
      // With some classes missing an accuracy says nothing.
      const bool tested = test_.wanted() && groups_ == 1;
      observer_.pass(pass, tested ? std::optional(test_.test(*pass.solutions).accuracy()) : std::nullopt);
    };
    std::vector<Solution> solutions;
    add_summary(solve(problem, options_.solve, solutions, context), report.summary);
    for (Solution& solution : solutions) {
      solution.duals = {};
      solution.class_duals = {};
    }
    if (test_.wanted() && groups_ == 1) report.test = test_.test(solutions);
    if (test_.wanted() && groups_ > 1) test_.add(solutions, first_of(number));
    if (classes_.positives.size() == 1) {
      report.model = make_model(store_, std::move(solutions.front().weights), classes_.labels, options_.bias,
                                solver_type(options_));
    } else {
      for (Solution& solution : solutions) report.columns.add(store_, std::move(solution.weights));
      report.model = make_model(store_, {}, classes_.labels, options_.bias, solver_type(options_));
    }
    report.model.against_rest = classes_.against_rest;
  }

  void save(SnapshotWriter& to, const TrainReport& report) const {
    const Summary& summary = report.summary;
    to.put("certificates", std::span<const Certificate>(summary.certificates));
    to.put("counts", std::span<const double>(std::array{
                         static_cast<double>(summary.termination), summary.certified ? 1.0 : 0.0,
                         static_cast<double>(summary.passes), static_cast<double>(summary.costs.bytes),
                         summary.costs.read_seconds, summary.costs.decode_seconds, summary.costs.wait_seconds,
                         summary.solve_seconds, summary.certify_seconds, summary.total_seconds}));
    summary.plan.save(to);
    test_.save(to);
  }

  void take_up(const SnapshotReader& from, TrainReport& report) {
    Summary& summary = report.summary;
    summary.plan = Plan::restore(from);
    summary.certificates.resize(from.count<Certificate>("certificates"));
    from.take("certificates", std::span<Certificate>(summary.certificates));
    std::array<double, 10> counts{};
    from.take("counts", std::span<double>(counts));
    summary.termination = static_cast<Termination>(static_cast<int>(counts[0]));
    summary.certified = counts[1] != 0;
    summary.passes = static_cast<int>(counts[2]);
    summary.costs = {static_cast<uint64_t>(counts[3]), counts[4], counts[5], counts[6]};
    summary.solve_seconds = counts[7];
    summary.certify_seconds = counts[8];
    summary.total_seconds = counts[9];
    for (size_t i = 0; i < summary.certificates.size(); ++i) report.columns.add_from_file();
    report.model = make_model(store_, {}, classes_.labels, options_.bias, solver_type(options_));
    test_.restore(from);
  }

  const TrainOptions& options_;
  Context context_;
  const TrainObserver& observer_;
  const Store& store_;
  const Classes classes_;
  const Problem problem_;
  TestRows test_;
  size_t groups_ = 1;
};

}  // namespace

TrainReport train(const TrainOptions& options, const Context& context, const TrainObserver& observer, bool dry_run) {
  check_inputs(options.test, "--test");  // before hours of packing and training, not after them
  check_inputs(options.test, "--test");  // before hours of packing and training, not after them
  TrainReport report;
  const Stopwatch packing;
  report.store = store_for(options, observer, report.packed);
  report.pack_seconds = packing.seconds();
  const Store store = Store::open(report.store);
  report.info = store.info();
  if (!options.test.empty()) store.features();  // while there is room for what reading it needs
  Training training(options, context, observer, store);
  if (!dry_run) {
    training.run(report);
    return report;
  }
  report.summary.plan = training.plan();
  observer.plan(report.summary.plan);
  return report;
}

void save_trained(const std::string& path, const TrainOptions& options, TrainReport& report, size_t threads) {
  const std::string metadata = describe_model(options, report);
  if (report.columns.size() == 0)
    save_model(path, report.model, metadata, threads);
  else
    save_model(path, report.model, report.columns, metadata, threads);
  report.columns.remove_files();
}

std::string describe_model(const TrainOptions& options, const TrainReport& report) {
  const Summary& summary = report.summary;
  const Certificate certificate = summary.total();
  Json json = {{"program", "linblock 0.1.0"},
               {"loss", name_of(options.loss)},
               {"cost", options.cost},
               {"bias", options.bias},
               {"solver", name_of(options.solve.method)},
               {"tolerance", options.solve.tolerance},
               {"seed", options.solve.seed},
               {"labels", report.model.labels},
               {"against_rest", report.model.against_rest},
               {"index_base", report.model.index_base},
               {"normalized", report.model.normalized},
               {"store_id", fmt::format("{:016x}", report.info.id)},
               {"rows", report.info.rows},
               {"features", report.info.features()},
               {"passes", summary.passes},
               {"primal", certificate.primal},
               {"certified", summary.certified},
               {"dual", summary.certified ? Json(certificate.dual) : Json(nullptr)},
               {"gap", summary.certified ? Json(summary.largest_gap()) : Json(nullptr)},
               {"plan", summary.plan.describe()}};
  if (summary.certificates.size() > 1) {
    json["tasks"] = Json::array();
    for (size_t i = 0; i < summary.certificates.size(); ++i)
      json["tasks"].push_back({{"label", report.model.labels[i]},
                               {"primal", summary.certificates[i].primal},
                               {"dual", summary.certified ? Json(summary.certificates[i].dual) : Json(nullptr)},
                               {"gap", summary.certified ? Json(summary.certificates[i].gap()) : Json(nullptr)}});
  }
  return json.dump(1) + "\n";
}

}  // namespace linblock
