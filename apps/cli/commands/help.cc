#include <algorithm>
#include <array>

#include "base/error.h"
#include "cli/commands/commands.h"

namespace linblock::cli {

namespace {

struct Topic {
  std::string_view name;
  std::string_view about;
  std::string_view text;
};

constexpr std::array kTopics = {
    Topic{"memory", "what --memory limits, and what to do if it is too little",
          R"(--memory limits everything that the process holds: the program itself, weights,
dual variables, rows and buffers. The default is half of what the machine, or its
cgroup, allows.

Rows that fit stay in memory after the first pass. Rows that do not fit are read
from the store in each pass, a few chunks at a time; training then takes longer,
and the model is as good. Dual variables that do not fit live in a file beside
the checkpoint.

'linblock train DATA -o MODEL --dry-run' prints the plan: what the memory is used
for. If the limit is too low, the error lists what takes the memory and the
smallest limit that works. 16M is enough for a million features.

Sizes are bytes, or have a unit: 64K, 64M, 1G (powers of 1024).
)"},
    Topic{"certificate", "what 'converged' and 'gap' mean",
          R"(Training minimizes an objective: half the squared length of the weights, plus the
cost C times the sum of all rows' losses. No weights can reach a smaller value
than the optimum.

From time to time linblock reads all rows and computes two numbers in double
precision: the objective of the weights (primal), and a value that the optimum
cannot be below (dual). The gap is (primal - dual) / dual. A gap of 0.8% means
that the objective is at most 0.8% above the optimum. Rounding errors are
included in the bound.

Training ends with 'converged' if the gap is at most --tolerance (1% if you do
not set it). 'not converged' says why training ended before, and what helps.
--require-converged ends such a run with exit code 7.

A gap of 1% is enough for the accuracy of most models. To get the labels of an
exact solution, set --tolerance to 1e-4 or less.

Lines of passes show 'gap about': an estimate, without a certificate.
)"},
    Topic{"exit-codes", "what the program returns, and which runs to try again",
          R"(  0  done
  2  usage: a wrong option, a name that is taken, options that do not go together
  3  bad input: a line that is not a row, a label that the data do not have
  4  damaged: a file of linblock that changed after it was written
  5  an I/O error, or the disk is full
  6  too little memory: the error gives the smallest --memory that works
  7  not converged (with --require-converged)
 70  a defect of linblock: please report it
130  interrupted (Ctrl-C or SIGTERM)

After 5 (once there is room), 130 and a kill, run the same command again: training
resumes from its checkpoint. After 6 give more --memory. The same command fails
again after 2, 3, 4 and 7.
)"},
};

std::string list_of_topics() {
  std::string text = "Topics:\n";
  for (const Topic& topic : kTopics) text += fmt::format("  {:<12} {}\n", topic.name, topic.about);
  return text + "\nSee 'linblock help TOPIC', and 'linblock COMMAND --help' for a command.\n";
}

const Topic* find_topic(std::string_view name) {
  const auto topic =
      std::find_if(kTopics.begin(), kTopics.end(), [&](const Topic& known) { return known.name == name; });
  return topic == kTopics.end() ? nullptr : &*topic;
}

}  // namespace

bool is_topic(std::string_view name) { return find_topic(name) != nullptr; }

void add_help(Parser& parser) {
  Command command = parser.add("help", "Explain a topic: memory, certificate, exit-codes");
  if (!command.wanted()) return;
  auto topics = std::make_shared<std::vector<std::string>>();
  command.optional_arguments("TOPIC", "A topic, or a command", *topics);
  command.examples("  linblock help certificate\n  linblock help train");
  command.run([topics] {
    if (topics->size() > 1) fail(ErrorKind::usage, "'linblock help' explains one topic at a time");
    const Topic* const topic = topics->empty() ? nullptr : find_topic(topics->front());
    fmt::print("{}", topic == nullptr ? list_of_topics() : std::string(topic->text));
  });
}

}  // namespace linblock::cli
