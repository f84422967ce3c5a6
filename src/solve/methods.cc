#include "solve/methods.h"

#include "base/error.h"
#include "solve/core/solver.h"

namespace linblock {

namespace {

template <class... M>
constexpr bool all_are_methods(std::type_identity<std::variant<M...>>) {
  return (Method<M> && ...);
}
static_assert(all_are_methods(std::type_identity<AnyMethod>{}));

// The remedies follow from the lists, so they stay true as the lists grow.
[[noreturn]] void refuse(const AnyMethod& method, const AnyLoss& loss) {
  std::vector<std::string> losses;
  std::vector<std::string> methods;
  Losses::for_each([&]<class L>(std::type_identity<L>) {
    if (supports(method, L{})) losses.emplace_back(L::kName);
  });
  Methods::for_each([&]<class M>(std::type_identity<M>) {
    if (M::kAbilities.tasks == TaskKind::one_vs_rest && supports(M{}, loss)) methods.emplace_back(M::kName);
  });
  const std::string_view needs = std::visit([]<class M>(const M&) { return M::kNeeds; }, method);
  fail(ErrorKind::usage, {use("loss", join_words(losses)), use("solver", join_words(methods))},
       "{} needs {}, and {} is none", name_of(method), needs, name_of(loss));
}

}  // namespace

Abilities abilities_of(const AnyMethod& method) {
  return std::visit([]<class M>(const M&) { return M::kAbilities; }, method);
}

bool supports(const AnyMethod& method, const AnyLoss& loss) {
  return std::visit([]<class M, class L>(const M&, const L&) { return M::template kSupports<L>; }, method, loss);
}

void check(const AnyMethod& method, const AnyLoss& loss) {
  if (!supports(method, loss)) refuse(method, loss);
  const std::string wrong = std::visit([&](const auto& chosen) { return chosen.check(loss); }, method);
  if (!wrong.empty()) fail(ErrorKind::usage, "{}", wrong);
}

std::vector<Setting> settings_of(AnyMethod& method) {
  return std::visit([](auto& chosen) { return linblock::settings_of(chosen); }, method);
}

std::string identity_of(const AnyMethod& method) {
  return std::visit(
      []<class M>(const M& chosen) { return fmt::format("solver: {}\n{}", M::kName, linblock::identity_of(chosen)); },
      method);
}

}  // namespace linblock
