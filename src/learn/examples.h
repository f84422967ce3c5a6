// Rows to apply a model to, from text or from a store, in the order of the input and with their original indices.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/team.h"
#include "store/text/label_names.h"
#include "store/text/svmlight.h"

namespace linblock {

struct Example {
  std::optional<int32_t> label = {};  // absent where the text has none
  std::span<const uint32_t> index = {};
  std::span<const float> value = {};
};

struct ReadProgress {
  uint64_t bytes_read = 0;
  uint64_t total_bytes = 0;  // 0: not known
  uint64_t rows = 0;
};

// How the caller follows the reading and ends it early.
struct ReadContext {
  std::function<void(const ReadProgress&)> observer = [](const ReadProgress&) {};
  const std::atomic<bool>* stop = nullptr;
};

struct ExampleOptions {
  int index_base = 1;                          // of text: the model's, never a guess from this text
  bool normalized = false;                     // rows are scaled to unit length
  uint64_t memory_bytes = uint64_t{64} << 20;  // for reading: lines, and what decompresses them
  bool word_labels = false;                    // of text: else labels are numbers
  // Where labels are words: those that are known. Words that the rows have besides get the next codes, by first
  // appearance. Null: nobody asks for labels, and what they are means nothing.
  LabelNames* names = nullptr;
  ReadContext context = {};
};

bool is_store(const std::string& path);
// What for_each_example reads as a store.
bool are_store(const std::vector<std::string>& inputs);

// Of data that is read several times, before any work: throws where a path is absent, standard input, or a folder that
// is no store. `option` names them in the message.
void check_test_inputs(const std::vector<std::string>& inputs);

// Returns how many there were; none at all is ErrorKind::input. Told to stop: ErrorKind::interrupted.
uint64_t for_each_example(const std::vector<std::string>& inputs, const ExampleOptions& options,
                          const std::function<void(const Example&)>& visit);

// Of text, on all threads of the team, a piece of some rows at a time; text that is large for the memory, on fewer.
// `work` is called on several threads at once. From when its `wait` has returned on, all pieces before are done, and
// those behind wait: what has an order belongs there. Labels that are words have their codes from then on.
uint64_t for_each_piece(const std::vector<std::string>& inputs, const ExampleOptions& options, const Team& team,
                        const std::function<void(const ParsedRows& rows, const std::function<void()>& wait)>& work);
Example example_of(const ParsedRows& rows, size_t number);

}  // namespace linblock
