// Files that a command writes. Nothing that a person might miss is overwritten: no input of the same run, and where a
// model or a trace goes, only an older model or trace.
#pragma once

#include <string>
#include <vector>

namespace linblock::cli {

// `inputs`: files and folders that are read; - is standard input.
void check_output(const std::string& path, const char* option, const std::vector<std::string>& inputs);
// By how it begins; false where there is nothing.
bool is_model(const std::string& path);
void check_model_output(const std::string& path, const std::vector<std::string>& inputs);
void check_trace_output(const std::string& path, const std::vector<std::string>& inputs);

}  // namespace linblock::cli
