// A list of types: the one place where methods, or losses, are enumerated.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace linblock {

// Each type has a kName.
template <class... T>
struct List {
  using Any = std::variant<T...>;
  static constexpr size_t kSize = sizeof...(T);
  static constexpr std::array<std::string_view, kSize> kNames = {T::kName...};

  // Calls work(std::type_identity<T>) for each.
  template <class Work>
  static constexpr void for_each(const Work& work) {
    (work(std::type_identity<T>{}), ...);
  }
  // With its defaults; nothing where no type has this name.
  static std::optional<Any> make(std::string_view name) {
    std::optional<Any> made;
    for_each([&]<class One>(std::type_identity<One>) {
      if (One::kName == name) made = One{};
    });
    return made;
  }
};

// "a, b or c".
std::string join_words(const std::vector<std::string>& words, std::string_view last = " or ");

}  // namespace linblock
