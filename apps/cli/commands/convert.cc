#include "base/bytes.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/commands/commands.h"
#include "cli/show/outputs.h"
#include "cli/show/verdict.h"
#include "learn/model.h"

namespace linblock::cli {

namespace {

struct ConvertRequest {
  std::string model;
  std::string output;
  ModelFormat model_format = ModelFormat::text;
  Team team = 1;

  static constexpr auto options() {
    return std::tuple{option("model_format", &ConvertRequest::model_format, "FORMAT",
                             "text, which LIBLINEAR reads, or binary, which is smaller and loads faster "
                             "(default: the one that MODEL does not have)",
                             {}, "auto", false)};
  }
};

void run_convert(ConvertRequest& request, bool format_given, Session& session) {
  Outputs({request.model}).add_model(request.output, false);
  const FileLock lock = FileLock::acquire_temporary(model_lock_path(request.output), "converting", request.output);
  const ModelRows rows(request.model);
  if (!format_given) request.model_format = rows.form() == ModelFormat::text ? ModelFormat::binary : ModelFormat::text;
  if (!rows.header().warning.empty()) session.terminal.say("warning: " + rows.header().warning);
  const uint64_t left_out = convert_model(request.model, request.output, request.model_format, request.team);
  say_names_left_out(left_out, session.terminal);
  forget_state(request.output);
  if (request.model_format == ModelFormat::text) say_for_liblinear(rows.header(), session.terminal);
  session.terminal.say(fmt::format("{}: {} to {}: {}", request.model, human_bytes(file_stamp(request.model).bytes),
                                   request.output, human_bytes(file_stamp(request.output).bytes)));
}

}  // namespace

void add_convert(Parser& parser, Session& session) {
  Command command = parser.add("convert", "Write a model in its other form: text or binary");
  if (!command.wanted()) return;
  auto request = std::make_shared<ConvertRequest>();
  command.argument("MODEL", "A model of linblock or LIBLINEAR", request->model);
  command.required("-o,--output", "MODEL", "The model to write", request->output);
  command.settings(settings_of(*request));
  add_threads_option(command, request->team);
  add_quiet_option(command, session);
  command.examples(
      "  linblock convert model -o model.bin\n"
      "  linblock convert model.bin -o model.txt --model-format text");
  command.run([request, command, &session] { run_convert(*request, command.given("--model-format"), session); });
}

}  // namespace linblock::cli
