// What a method is, before it runs: a name, options, which losses and tasks it takes, what it reads and what a later
// run can start from. Everything that asks about a method asks these members; the list is solve/methods.h.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/option.h"
#include "objective/losses/losses.h"

namespace linblock {

struct Context;
struct Plan;
struct Problem;
struct Setup;
struct SolveOptions;
struct Solution;
struct Summary;
class Solver;

enum class Reads { rows, columns, index };
enum class TaskKind {
  one_vs_rest,
  all_classes,  // one task tells all classes apart
};
// What a later run can start from.
enum class Start {
  nothing,
  weights,  // the model itself
  duals,    // MODEL.state: the dual variable of every row
  steps,    // MODEL.state: the weights and the number of steps
};
enum class Truncates {
  no,
  around,  // by the outer loop of solve/truncated
  itself,
};

struct Abilities {
  Reads reads = Reads::rows;
  TaskKind tasks = TaskKind::one_vs_rest;
  Start start = Start::nothing;
  Truncates truncates = Truncates::no;
  std::optional<double> usual_truncation = {};  // where the user does not say
  bool certifies = true;
  bool primal = false;                   // minimizes over w alone: any weights are a start, and there are no duals
  bool free_bias = false;                // can leave the bias out of the penalty
  std::string_view liblinear_name = {};  // of its models, where it is not the loss's
  bool joint_probabilities = false;      // the decisions of all classes together are a distribution (softmax)
};

template <class M>
concept Method = Unit<M> && requires(const M method, const AnyLoss& loss, const Problem& problem,
                                     const SolveOptions& options, const Context& context, const Setup& setup) {
  // Of a loss: in words, and as a condition. A refusal is made of both.
  { M::kNeeds } -> std::convertible_to<std::string_view>;
  { M::template kSupports<Hinge> } -> std::convertible_to<bool>;
  { M::kAbilities } -> std::convertible_to<Abilities>;
  // Rules among its own options, and of an option with a loss: what is wrong, in words; empty: nothing.
  { method.check(loss) } -> std::same_as<std::string>;
  // What its memory is used for, in named parts. Throws ErrorKind::memory where there is too little.
  { method.plan(problem, options, context) } -> std::same_as<Plan>;
  // At work: solve/core/pass.h.
  { method.make(setup) } -> std::same_as<std::unique_ptr<Solver>>;
};

}  // namespace linblock
