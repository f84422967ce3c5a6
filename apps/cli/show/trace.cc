#include "cli/show/trace.h"

#include <cmath>

#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "learn/truncated_json.h"

namespace linblock::cli {

namespace {

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

void add_costs(const ReadCosts& costs, Json& json) {
  json["bytes"] = costs.bytes;
  json["read_seconds"] = costs.read_seconds;
  json["decode_seconds"] = costs.decode_seconds;
  json["wait_seconds"] = costs.wait_seconds;
}

}  // namespace

void Trace::write(const std::string& line) {
  const std::string text = line + "\n";
  file_.write_at({reinterpret_cast<const unsigned char*>(text.data()), text.size()}, size_);
  size_ += text.size();
}

namespace {

// {"weights": 4000, "duals": 2700}: bytes by name.
Json parts_json(const Plan& plan) {
  Json parts = Json::object();
  for (const MemoryPart& part : plan.parts) parts[part.name] = part.bytes;
  return parts;
}

}  // namespace

void Trace::begin(const std::vector<std::string>& command, const TrainOptions& options, const Plan& plan,
                  uint64_t memory_bytes, bool resumed) {
  if (path_.empty()) return;
  const char* event = file_.is_open() ? "group" : resumed ? "resume" : "begin";
  if (!file_.is_open()) {
    file_ = resumed ? File::update_output(path_) : File::create_output(path_);
    size_ = resumed ? file_.size() : 0;
  }
  write(Json{{"event", event},
             {"command", command},
             {"inputs", options.inputs},
             {"loss", name_of(options.loss)},
             {"truncate", options.truncate ? Json(*options.truncate) : Json(nullptr)},
             {"cost", options.cost},
             {"solver", plan.method_name()},
             {"tolerance", options.solve.tolerance},
             {"seed", options.solve.seed},
             {"memory_bytes", memory_bytes},
             {"plan",
              {{"words", plan.describe()},
               {"tasks", plan.tasks},
               {"parts", parts_json(plan)},
               {"window_bytes", plan.window_bytes},
               {"cache_bytes", plan.cache_bytes},
               {"chunks_per_block", plan.chunks_per_block},
               {"inner", plan.inner}}}}
            .dump());  // names of files may be no UTF-8
}

void Trace::block(const BlockReport& report) {
  if (path_.empty()) return;
  Json json = {{"event", "block"},
               {"pass", report.pass},
               {"block", report.block},
               {"blocks", report.blocks},
               {"seconds", report.seconds},
               {"rows", report.rows},
               {"solve_seconds", report.solve_seconds}};
  add_costs(report.costs, json);
  json["resident_bytes"] = resident_bytes();
  write(json.dump());
}

void Trace::pass(const PassReport& report, std::optional<double> test_accuracy) {
  if (path_.empty()) return;
  Json json = {{"event", "pass"},
               {"pass", report.pass},
               {"seconds", report.seconds},
               {"rows", report.rows},
               {"solve_seconds", report.solve_seconds}};
  add_costs(report.costs, json);
  json["bytes_read"] = report.bytes_read;
  // Estimates, except where a certificate was made.
  json["primal"] = number(report.certified ? report.certified->primal : report.primal_estimate);
  json["dual"] = number(report.certified ? report.certified->dual : report.dual);
  json["gap"] = number(report.certified ? report.certified->gap() : report.gap_estimate());
  if (report.gradient_norm > 0) json["gradient_norm"] = report.gradient_norm;
  if (report.largest_slope > 0) json["largest_slope"] = report.largest_slope;
  if (report.active_rows > 0) json["active_rows"] = report.active_rows;
  if (report.truncated) json["truncated"] = truncated_json(*report.truncated);
  json["certified"] = report.certified && std::isfinite(report.certified->gap());
  if (report.certified) {
    json["certify_seconds"] = report.certify_seconds;
    json["certify_bytes"] = report.certify_costs.bytes;
  }
  json["test_accuracy"] = test_accuracy ? Json(*test_accuracy) : Json(nullptr);
  json["resident_bytes"] = resident_bytes();
  write(json.dump());
}

void Trace::end(const Summary& summary, double seconds, std::optional<double> test_accuracy, const Team& team) {
  if (path_.empty()) return;
  Json json = {{"event", "end"},
               {"seconds", seconds},
               {"passes", summary.passes},
               {"bytes_read", summary.costs.bytes},
               {"converged", summary.converged()},
               {"termination", name_of(summary.termination)},
               {"primal", number(summary.total().primal)},
               {"dual", summary.certified() ? Json(summary.total().dual) : Json(nullptr)},
               {"certified_gap", summary.certified() ? Json(summary.largest_gap()) : Json(nullptr)}};
  add_truncated(summary, json);
  add_certificates_made(summary, json);
  json["test_accuracy"] = test_accuracy ? Json(*test_accuracy) : Json(nullptr);
  json["peak_memory_bytes"] = peak_resident_bytes();
  json["processor_seconds"] = processor_seconds();
  std::vector<Json> threads;
  for (const Team::Busy& busy : team.busy())
    threads.push_back({{"shared_work_seconds", busy.pieces}, {"reading_seconds", busy.background}});
  json["threads"] = threads;
  write(json.dump());
}

}  // namespace linblock::cli
