#include "cli/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>

namespace linblock::cli {

namespace {

// Insertions, deletions and replacements that turn one word into the other.
size_t edits(const std::string& from, const std::string& to) {
  std::vector<size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < from.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < to.size(); ++j) {
      const size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
    }
  }
  return row.back();
}

// `here`: {} stands for the value.
struct Foreign {
  std::string_view program;
  std::string_view option;
  std::string_view here;
};
constexpr std::array kForeign = {
    Foreign{"LIBLINEAR", "-c", "--cost {}"},
    Foreign{"LIBLINEAR", "-B", "--bias {}"},
    Foreign{"LIBLINEAR", "-R", "--free-bias"},
    Foreign{"LIBLINEAR", "-e",
            "--tolerance, which bounds the distance from the optimum (1% by default), not a gradient"},
    Foreign{"LIBLINEAR", "-v", "'linblock cv INPUT --folds {}'"},
    Foreign{"LIBLINEAR", "-C", "'linblock tune INPUT'"},
    Foreign{"LIBLINEAR", "-b", "'linblock predict MODEL INPUT --probability'"},
    Foreign{"LIBLINEAR", "-p", "for regression, which linblock does not have"},
    Foreign{"LIBLINEAR", "-n", "for one-class SVM, which linblock does not have"},
    Foreign{"Vowpal Wabbit", "-d", "INPUT: name the file without an option"},
    Foreign{"Vowpal Wabbit", "--data", "INPUT: name the file without an option"},
    Foreign{"Vowpal Wabbit", "-f", "-o {}"},
    Foreign{"Vowpal Wabbit", "--final_regressor", "-o {}"},
    Foreign{"Vowpal Wabbit", "-i", "--warm {}"},
    Foreign{"Vowpal Wabbit", "--initial_regressor", "--warm {}"},
    Foreign{"Vowpal Wabbit", "--loss_function", "--loss: hinge, squared-hinge or logistic"},
    Foreign{"Vowpal Wabbit", "--passes", "--max-passes; without it training ends when the optimum is certified"},
    Foreign{"Vowpal Wabbit", "--l2", "--cost, which is 1 / (l2 x rows)"},
    Foreign{"Vowpal Wabbit", "--l1", "an L1 penalty, which linblock does not have"},
    Foreign{"scikit-learn", "--C", "--cost {}"},
    Foreign{"scikit-learn", "--alpha", "--cost, which is 1 / (alpha x rows)"},
    Foreign{"scikit-learn", "--penalty", "always L2 in linblock"},
    Foreign{"scikit-learn", "--dual", "--solver dual"},
    Foreign{"scikit-learn", "--tol", "--tolerance, which bounds the distance from the optimum"},
    Foreign{"scikit-learn", "--max_iter", "--max-passes {}"},
    Foreign{"scikit-learn", "--max-iter", "--max-passes {}"},
    Foreign{"scikit-learn", "--epochs", "--max-passes {}"},
    Foreign{"scikit-learn", "--fit_intercept", "--bias 1, or --free-bias for one that is not penalized"},
    Foreign{"scikit-learn", "--random_state", "--seed {}"},
    Foreign{"scikit-learn", "--n_jobs", "--threads {}"},
    Foreign{"scikit-learn", "--scoring", "--metric, of cv and tune: accuracy, balanced-accuracy, f1, auc or log-loss"},
};

// Of LIBLINEAR's -s.
struct SolverType {
  std::string_view number;
  std::string_view here;
};
constexpr std::array kSolverTypes = {
    SolverType{"0", "--loss logistic"},
    SolverType{"1", "--loss squared-hinge --solver dual"},
    SolverType{"2", "--loss squared-hinge"},
    SolverType{"3", "--loss hinge"},
    SolverType{"4", "--multiclass crammer-singer"},
    SolverType{"5", "an L1 penalty, which linblock does not have"},
    SolverType{"6", "an L1 penalty, which linblock does not have"},
    SolverType{"7", "--loss logistic --solver dual"},
    SolverType{"11", "regression, which linblock does not have"},
    SolverType{"12", "regression, which linblock does not have"},
    SolverType{"13", "regression, which linblock does not have"},
    SolverType{"21", "a one-class SVM, which linblock does not have"},
};

std::string with_value(std::string_view here, std::string_view value) {
  std::string text(here);
  const size_t place = text.find("{}");
  if (place != std::string::npos) text.replace(place, 2, value.empty() ? "N" : value);
  return text;
}

bool is_value(std::string_view word) {
  return !word.empty() && (word[0] != '-' || (word.size() > 1 && std::isdigit(static_cast<unsigned char>(word[1]))));
}

}  // namespace

std::optional<std::string> equivalent_of(std::string_view typed, std::string_view value) {
  if (!is_value(value)) value = {};
  const auto is = [&](std::string_view program, std::string_view words, std::string_view here) {
    return fmt::format("{}'s {}{}{} is {}", program, words, value.empty() ? "" : " ", value, here);
  };
  if (typed == "-B" && value.starts_with('-')) return "LIBLINEAR's -B -1, no bias, is the default";
  if (typed == "-s") {
    for (const SolverType& type : kSolverTypes)
      if (type.number == value) return is("LIBLINEAR", typed, type.here);
    return is("LIBLINEAR", typed, "--loss and --solver");
  }
  // -w1 2: the label stands in the option.
  const std::string_view label = typed.starts_with("-w") ? typed.substr(2) : std::string_view();
  if (!label.empty() && label.find_first_not_of("-0123456789") == std::string_view::npos)
    return is("LIBLINEAR", typed, fmt::format("--class-weight {}={}", label, value.empty() ? "WEIGHT" : value));
  for (const Foreign& foreign : kForeign)
    if (foreign.option == typed) {
      if (foreign.here.find("{}") == std::string_view::npos) value = {};
      return is(foreign.program, typed, with_value(foreign.here, value));
    }
  return {};
}

std::string nearest(const std::string& typed, const std::vector<std::string>& known) {
  std::string best;
  size_t least = std::max<size_t>(2, typed.size() / 3) + 1;
  for (const std::string& word : known) {
    const size_t distance = typed.size() > 2 && word.starts_with(typed) ? 1 : edits(typed, word);
    if (distance < least) {
      least = distance;
      best = word;
    }
  }
  return best;
}

}  // namespace linblock::cli
