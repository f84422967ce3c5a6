#include "objective/losses/losses.h"

#include "base/error.h"

namespace linblock {

namespace {

// Every loss is a Loss: the list and the concept cannot drift apart.
template <class... L>
constexpr bool all_are_losses(std::type_identity<std::variant<L...>>) {
  return (Loss<L> && ...);
}
static_assert(all_are_losses(std::type_identity<AnyLoss>{}));

}  // namespace

AnyLoss loss_of(std::string_view name) {
  if (const std::optional<AnyLoss> loss = Losses::make(name)) return *loss;
  fail(ErrorKind::usage, "'{}' is not a loss: choose {}", name,
       join_words({Losses::kNames.begin(), Losses::kNames.end()}));
}

std::vector<Setting> settings_of(AnyLoss& loss) {
  return std::visit([](auto& chosen) { return linblock::settings_of(chosen); }, loss);
}

std::string identity_of(const AnyLoss& loss) {
  return std::visit(
      []<class L>(const L& chosen) { return fmt::format("loss: {}\n{}", L::kName, linblock::identity_of(chosen)); },
      loss);
}

bool is_smooth(const AnyLoss& loss) {
  return std::visit([]<class L>(const L&) { return SmoothLoss<L>; }, loss);
}

bool has_sparse_duals(const AnyLoss& loss) {
  return std::visit([]<class L>(const L&) { return L::kSparseDuals; }, loss);
}

bool has_probabilities(const AnyLoss& loss) {
  return std::visit([]<class L>(const L&) { return L::kProbabilities; }, loss);
}

LiblinearNames liblinear_names(const AnyLoss& loss) {
  return std::visit([]<class L>(const L&) { return L::kLiblinear; }, loss);
}

bool liblinear_has_probabilities(std::string_view solver_type) {
  bool has_probabilities = false;
  Losses::for_each([&]<class L>(std::type_identity<L>) {
    const LiblinearNames names = L::kLiblinear;
    if (names.exact && L::kProbabilities && (solver_type == names.primal || solver_type == names.dual))
      has_probabilities = true;
  });
  return has_probabilities;
}

double outlier_margin(const AnyLoss& loss, double s) {
  return std::visit([&](const auto& chosen) { return chosen.margin_of(1 + s); }, loss);
}

}  // namespace linblock
