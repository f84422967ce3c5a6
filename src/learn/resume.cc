#include "learn/resume.h"

#include <charconv>

#include "base/bytes.h"
#include "base/error.h"
#include "learn/stages.h"

namespace linblock {

namespace {

struct TextOfFields {
  std::string& text;

  template <class T>
  void operator()(std::string_view name, const T& value) const {
    if constexpr (std::is_enum_v<T>)
      text += fmt::format("{}: {}\n", name, static_cast<int>(value));
    else
      text += fmt::format("{}: {}\n", name, value);
  }
};

// That the run of this checkpoint began with.
std::optional<uint64_t> memory_of(const Checkpoint& checkpoint) {
  constexpr std::string_view kLine = "\nmemory: ";
  const std::optional<std::string> identity = saved_identity(checkpoint);
  const size_t at = identity ? identity->find(kLine) : std::string::npos;
  if (at == std::string::npos) return {};
  uint64_t bytes = 0;
  const char* const end = identity->data() + identity->size();
  if (std::from_chars(identity->data() + at + kLine.size(), end, bytes).ec != std::errc()) return {};
  return bytes;
}

// Nothing where there is too little memory for any plan.
std::optional<std::string> layout_with(const Context& context,
                                       const std::function<std::string(const Context&)>& layout) {
  try {
    return layout(context);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::memory) throw;
    return {};
  }
}

// What would be enough for a run from the beginning is not enough for this one.
std::string layout_or_refusal(const Context& context, uint64_t then,
                              const std::function<std::string(const Context&)>& layout) {
  try {
    return layout(context);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::memory) throw;
    fail(ErrorKind::memory, {give_at_least("memory", size_of_at_least(then)), start_over()},
         "{}\n'{}' is a checkpoint of a run that began with `memory` {}", error.sentence(), context.checkpoint.path,
         SizeText(then).show());
  }
}

}  // namespace

std::string text_of(const Plan& plan) {
  std::string text;
  Plan::visit_fields(plan, TextOfFields{text});
  return text;
}

Resumed resume_with(const Context& context, bool fresh, const TrainObserver& observer,
                    const std::function<std::string(const Context&)>& layout) {
  Resumed resumed{.context = context, .planned_bytes = context.memory_bytes};
  if (fresh || !context.checkpoint.wanted()) return resumed;
  const std::optional<uint64_t> then = memory_of(context.checkpoint);
  if (!then || *then == context.memory_bytes) return resumed;
  Context as_then = context;
  as_then.memory_bytes = *then;
  if (*then < context.memory_bytes) {
    observer.say(library_text("this run began with `memory` {}, and resumes with its plan", SizeText(*then).show()));
    resumed.context = as_then;
    resumed.planned_bytes = *then;
  } else if (layout && layout_or_refusal(context, *then, layout) == layout_with(as_then, layout)) {
    resumed.planned_bytes = *then;
  }
  return resumed;
}

}  // namespace linblock
