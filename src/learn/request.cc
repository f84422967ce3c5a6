#include "learn/request.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "learn/train.h"

namespace linblock {

namespace {

// The names of methods that have an ability: "newton, softmax".
std::string names_with(const std::function<bool(const Abilities&)>& take) {
  std::vector<std::string> names;
  Methods::for_each([&]<class M>(std::type_identity<M>) {
    if (take(M::kAbilities)) names.emplace_back(M::kName);
  });
  return join_words(names, ", ");
}

// Help with the names of those methods that it speaks of.
std::string with_methods(std::string help) {
  const auto fill = [&](std::string_view place, const std::function<std::string()>& words) {
    if (const size_t at = help.find(place); at != std::string::npos) help.replace(at, place.size(), words());
  };
  const auto starts_from = [](bool weights) {
    return names_with([=](const Abilities& abilities) {
      return abilities.start != Start::nothing && (abilities.start == Start::weights) == weights;
    });
  };
  fill("{free bias}", [] { return names_with([](const Abilities& abilities) { return abilities.free_bias; }); });
  fill("{state}", [&] { return starts_from(false); });
  fill("{weights}", [&] { return starts_from(true); });
  fill("{usual truncation}", [] {
    std::string words;
    Methods::for_each([&]<class M>(std::type_identity<M>) {
      if (M::kAbilities.usual_truncation) words += fmt::format("; {}: {}", M::kName, *M::kAbilities.usual_truncation);
    });
    return words;
  });
  return help;
}

// Notes that a setting was given.
Setting noted(Setting setting, LearnRequest& request) {
  setting.help = with_methods(std::move(setting.help));
  setting.set = [set = setting.set, name = std::string(setting.name), &request](std::string_view text) {
    std::string wrong = set(text);
    if (wrong.empty()) request.given.insert(name);
    return wrong;
  };
  return setting;
}

std::vector<Setting> noted(std::vector<Setting> settings, LearnRequest& request) {
  for (Setting& setting : settings) setting = noted(std::move(setting), request);
  return settings;
}

std::vector<std::string> names_of_solvers(const std::function<bool(const Abilities&)>& take) {
  std::vector<std::string> names;
  Methods::for_each([&]<class M>(std::type_identity<M>) {
    if (M::kAbilities.tasks == TaskKind::one_vs_rest && take(M::kAbilities)) names.emplace_back(M::kName);
  });
  return names;
}

std::vector<std::string> names_of_solvers() {
  return names_of_solvers([](const Abilities&) { return true; });
}

std::vector<std::string> names_of_multiclass() {
  std::vector<std::string> names = {std::string(kOneVsRest)};
  Methods::for_each([&]<class M>(std::type_identity<M>) {
    if (M::kAbilities.tasks == TaskKind::all_classes) names.emplace_back(M::kName);
  });
  return names;
}

// A setting whose value is one of these names.
Setting choice(std::string_view name, std::string_view value, std::string help, std::string& to,
               std::vector<std::string> names) {
  const std::string what = join_words(names);
  return {.name = name,
          .value = value,
          .help = std::move(help),
          .what = what,
          .set = [&to, names = std::move(names), what](std::string_view text) -> std::string {
            if (std::find(names.begin(), names.end(), text) == names.end())
              return "'" + std::string(text) + "' is not " + what;
            to = text;
            return {};
          },
          .get = [&to] { return to; }};
}

bool is_listed(const AnyLoss&) { return true; }
bool is_listed(const AnyMethod& method) { return abilities_of(method).tasks == TaskKind::one_vs_rest; }

// Calls work(name, setting) for every option of every unit that a user can name: losses, and methods that are solvers.
template <class Units>
void for_each_option(const std::function<void(std::string_view, Setting&)>& work) {
  for (const std::string_view name : Units::kNames) {
    typename Units::Any unit = *Units::make(name);
    if (!is_listed(unit)) continue;
    for (Setting& setting : settings_of(unit)) work(name, setting);
  }
}

// Who has an option of this name: methods, or losses.
template <class Units>
std::vector<std::string> owners_of(std::string_view option) {
  std::vector<std::string> names;
  for_each_option<Units>([&](std::string_view unit, const Setting& setting) {
    if (setting.name == option) names.emplace_back(unit);
  });
  return names;
}

// The text is kept until the unit is known. A text that no unit can read is refused at once.
template <class Units>
std::string complaint_of_all(std::string_view option, std::string_view text) {
  std::string wrong;
  bool taken = false;
  for_each_option<Units>([&](std::string_view, const Setting& setting) {
    if (setting.name != option) return;
    std::string complaint = setting.set(text);
    taken = taken || complaint.empty();
    if (wrong.empty()) wrong = std::move(complaint);
  });
  return taken ? std::string() : wrong;
}

// "pegasos: Rows per step (default: row)": one setting for each name, with the default of each owner.
template <class Units>
std::vector<Setting> settings_of_units(LearnRequest& request) {
  std::vector<Setting> all;
  std::vector<std::string> defaults;
  for_each_option<Units>([&](std::string_view unit, Setting& setting) {
    const auto known =
        std::find_if(all.begin(), all.end(), [&](const Setting& other) { return other.name == setting.name; });
    if (known != all.end()) {
      std::string& text = defaults[static_cast<size_t>(known - all.begin())];
      if (text != setting.standard) text += fmt::format("; {}: {}", unit, setting.standard);
      return;
    }
    setting.set = [name = std::string(setting.name), &request](std::string_view text) {
      std::string wrong = complaint_of_all<Units>(name, text);
      if (wrong.empty()) request.options_of_units[name] = text;
      return wrong;
    };
    setting.get = [name = std::string(setting.name), standard = setting.standard, &request] {
      const auto text = request.options_of_units.find(name);
      return text == request.options_of_units.end() ? standard : text->second;
    };
    defaults.push_back(setting.standard);
    all.push_back(std::move(setting));
  });
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].help =
        fmt::format("{}: {} (default: {})", join_words(owners_of<Units>(all[i].name), ", "), all[i].help, defaults[i]);
    all[i] = noted(std::move(all[i]), request);
  }
  return all;
}

// The unit of this name with the options that were given for it. Those of other units stay where they are.
template <class Units>
typename Units::Any make_unit(std::string_view name, const LearnRequest& request) {
  typename Units::Any unit = *Units::make(name);
  for (const Setting& setting : settings_of(unit))
    if (const auto given = request.options_of_units.find(setting.name); given != request.options_of_units.end())
      if (const std::string wrong = setting.set(given->second); !wrong.empty())
        fail(ErrorKind::usage, "{}: `{}` {}", name, std::string(setting.name), wrong);
  return unit;
}

// Options that were given and that this unit does not have.
template <class Units>
void refuse_options_of_others(std::string_view kind, std::string_view name, bool named, const LearnRequest& request) {
  for (const auto& [option, text] : request.options_of_units) {
    const std::vector<std::string> owners = owners_of<Units>(option);
    if (owners.empty() || std::find(owners.begin(), owners.end(), name) != owners.end()) continue;
    fail(ErrorKind::usage, {leave_out(option)}, "`{}` is for `{}` {}, and {} has no such choice", option, kind,
         join_words(owners, " and "), named ? name : std::string_view("the default"));
  }
}

// The usual loss, the one named, or the one that an option belongs to.
void resolve_loss(LearnRequest& request) {
  const bool named = !request.loss.empty();
  std::string name = named ? request.loss : std::string(name_of(TrainOptions().loss));
  if (!named)
    for (const auto& [option, text] : request.options_of_units)
      if (const std::vector<std::string> owners = owners_of<Losses>(option); !owners.empty()) name = owners.front();
  refuse_options_of_others<Losses>("loss", name, true, request);
  request.options.loss = make_unit<Losses>(name, request);
}

// All classes at once: a method of its own, with a loss of its own.
void resolve_all_classes(LearnRequest& request) {
  const std::string& name = request.multiclass;
  const AnyMethod method = *Methods::make(name);
  const auto refuse = [&](std::string_view setting, std::string_view why) {
    fail(ErrorKind::usage, {leave_out(std::string(setting))}, "`multiclass` {} {}", name, why);
  };
  std::optional<AnyLoss> loss;
  Losses::for_each([&]<class L>(std::type_identity<L>) {
    if (!loss && supports(method, L{})) loss = L{};
  });
  if (!request.loss.empty() && !supports(method, *Losses::make(request.loss))) refuse("loss", "has a loss of its own");
  if (request.options.positive) refuse("positive", "tells all labels apart");
  const bool is_of_its_kind = request.solver == name_of(SolveOptions().method) && !abilities_of(method).primal;
  if (!request.solver.empty() && !is_of_its_kind) refuse("solver", "is a solver of its own");
  for (const auto& [option, text] : request.options_of_units) refuse(option, "is a solver of its own");
  request.options.loss = *loss;
  request.options.solve.method = method;
  request.options.choose_method = false;
}

// Where no solver is named: options and states that only some methods have choose one. A method that certifies nothing
// must be asked for by its name.
void choose_by_options(LearnRequest& request) {
  const auto choose = [&](const std::string& solver, std::string reason) {
    request.solver = solver;
    request.options.method_reason = std::move(reason);
  };
  for (const auto& [option, text] : request.options_of_units)
    for (const std::string& owner : owners_of<Methods>(option))
      if (request.solver.empty() && abilities_of(*Methods::make(owner)).certifies)
        choose(owner, library_text("`{}` is for it", option));
  const std::vector<std::string> with_duals =
      names_of_solvers([](const Abilities& abilities) { return abilities.start == Start::duals; });
  if (request.options.free_bias && request.solver.empty())
    choose(names_of_solvers([](const Abilities& abilities) { return abilities.free_bias; }).front(),
           "the bias is not penalized");
  if (request.state.keep_state) choose(with_duals.front(), library_text("`keep_state` keeps duals"));
  if (!request.options.warm.empty() && !request.options.free_bias)
    choose(with_duals.front(), library_text("`warm` starts from dual variables"));
}

void resolve_method(LearnRequest& request) {
  const bool named = !request.solver.empty();
  if (!named) choose_by_options(request);
  const std::string name = request.solver.empty() ? std::string(name_of(SolveOptions().method)) : request.solver;
  refuse_options_of_others<Methods>("solver", name, !request.solver.empty(), request);
  request.options.solve.method = make_unit<Methods>(name, request);
  request.options.choose_method = request.solver.empty();
}

// A bias that is not penalized is a constant feature, of 1 where no value is named.
void resolve_free_bias(LearnRequest& request) {
  TrainOptions& options = request.options;
  if (!options.free_bias) return;
  if (!request.was_given("bias")) options.bias = 1;
  if (!(options.bias > 0))
    fail(ErrorKind::usage, {leave_out("bias"), leave_out("free_bias")},
         "`free_bias` leaves the weight of the constant feature out of the penalty, and `bias` is not above 0");
  if (options.choose_method || abilities_of(options.solve.method).free_bias) return;
  const std::vector<std::string> solvers =
      names_of_solvers([](const Abilities& abilities) { return abilities.free_bias; });
  fail(ErrorKind::usage, {use("solver", join_words(solvers)), leave_out("free_bias")},
       "`free_bias`: {} penalizes the bias as it does every weight", name_of(options.solve.method));
}

void check_state_settings(const LearnRequest& request) {
  const AnyMethod& method = request.options.solve.method;
  const Start start = abilities_of(method).start;
  if (start == Start::weights && request.state.keep_state)
    fail(ErrorKind::usage, {leave_out("keep_state")}, "{} needs no state: `warm` starts from the model itself",
         name_of(method));
  if (start != Start::nothing || (!request.state.keep_state && request.options.warm.empty())) return;
  const auto solvers = [](bool with_weights) {
    return join_words(names_of_solvers([&](const Abilities& abilities) {
                        return abilities.start == Start::weights ? with_weights : abilities.start != Start::nothing;
                      }),
                      " and ");
  };
  fail(ErrorKind::usage, {leave_out(request.state.keep_state ? "keep_state" : "warm")},
       "{} has nothing to start from: `keep_state` is for `solver` {}, `warm` for {}", name_of(method), solvers(false),
       solvers(true));
}

}  // namespace

Resources Resources::usual() { return {.memory_bytes = permitted_memory_bytes() / 2, .threads = available_threads()}; }

std::vector<SettingGroup> learn_settings(LearnRequest& request) {
  std::vector<std::string> losses;
  Losses::for_each([&]<class L>(std::type_identity<L>) { losses.emplace_back(L::kName); });
  const std::string usual_loss(name_of(TrainOptions().loss));
  std::vector<Setting> problem = {noted(
      choice("loss", "LOSS", fmt::format("{} (default: {})", join_words(losses), usual_loss), request.loss, losses),
      request)};
  for (Setting& setting : noted(settings_of(request.options), request)) problem.push_back(std::move(setting));
  std::vector<Setting> training = {
      noted(choice("solver", "NAME", join_words(names_of_solvers()) + " (default: chosen from the data)",
                   request.solver, names_of_solvers()),
            request),
      noted(choice("multiclass", "NAME",
                   fmt::format("Several classes: {} (default: {})", join_words(names_of_multiclass()), kOneVsRest),
                   request.multiclass, names_of_multiclass()),
            request)};
  for (Setting& setting : noted(settings_of(request.options.solve), request)) training.push_back(std::move(setting));
  std::vector<Setting> packing = noted(settings_in(PackOptions::text_options(), request.options.pack), request);
  for (Setting& setting : noted(settings_of(request.options.pack), request)) packing.push_back(std::move(setting));
  std::vector<Setting> places = noted(settings_of(request.checkpoint), request);
  for (Setting& setting : noted(settings_in(TrainOptions::place_options(), request.options), request))
    places.push_back(std::move(setting));
  return {{"Problem", std::move(problem)},
          {"Resources", noted(settings_of(request.resources), request)},
          {"Training", std::move(training)},
          {"Loss options", settings_of_units<Losses>(request)},
          {"Solver options", settings_of_units<Methods>(request)},
          {"Reading text", std::move(packing)},
          {"Checkpoints", std::move(places)}};
}

std::vector<Setting> model_settings(LearnRequest& request) {
  std::vector<Setting> all = noted(settings_of(request.state), request);
  for (Setting& setting : noted(settings_in(TrainOptions::model_options(), request.options), request))
    all.push_back(std::move(setting));
  return all;
}

void resolve(LearnRequest& request) {
  TrainOptions& options = request.options;
  if (request.multiclass != kOneVsRest) {
    resolve_all_classes(request);
  } else {
    resolve_loss(request);
    resolve_method(request);
  }
  const Abilities abilities = abilities_of(options.solve.method);
  if (!options.choose_method) check(options.solve.method, options.loss);
  if (!options.choose_method && !request.was_given("truncate")) options.truncate = abilities.usual_truncation;
  if (!options.choose_method) check_state_settings(request);
  resolve_free_bias(request);
  if (options.calibrate > 0 && has_probabilities(options.loss))
    fail(ErrorKind::usage, {leave_out("calibrate")},
         "`calibrate` is for hinge losses: a {} model has probabilities of its own", name_of(options.loss));
  if (options.hold_out && !options.threshold)
    fail(ErrorKind::usage, {leave_out("hold_out"), use("threshold", "f1")},
         "`hold_out` is for a `threshold` that is chosen on those rows");
  if (options.hold_out && options.calibrate > 0)
    fail(
        ErrorKind::usage, {leave_out("hold_out")},
        "`calibrate` and `hold_out` both say how many rows are held out, and the threshold is chosen on the same rows");
  check_truncation(options, request.state.keep_state);
  options.pack.memory_bytes = request.resources.memory_bytes;
}

}  // namespace linblock
