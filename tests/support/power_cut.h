// A model of what a disk surely holds: a file as it was when it was last synced, a folder's names as they were when the
// folder was last synced. A power cut at the N-th call makes that call and all later ones fail; survivors() then writes
// out a folder as it may be found after the cut. For work on one thread.
#pragma once

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/random.h"
#include "support/folder.h"

namespace linblock::test {

class PowerCut {
 public:
  // What lies below `root` now is on the disk for sure. `cut_at` 0: no cut before the work has ended.
  PowerCut(const std::string& root, uint64_t cut_at) : root_(root), cut_at_(cut_at) { load(0, root); }

  FileVerdict operator()(const FileCall& call) {
    if (cut_) return {.error = EIO};
    settle();
    if (++calls_ == cut_at_) {
      cut_ = true;
      return {.error = EIO};
    }
    under_way_ = call;
    return {};
  }

  bool happened() const { return cut_; }
  uint64_t calls() const { return calls_; }

  enum class Keep {
    synced,         // nothing but what was synced
    names,          // every name, and zeros for what was written and not synced
    some_of_it_all  // each name and each page that was not synced, or not, at random
  };

  void survivors(const std::string& to, Keep keep, uint64_t seed = 1) {
    if (!cut_) settle();
    std::filesystem::remove_all(to);
    Random random(seed);
    write_out(0, root_, to, keep, random);
  }

 private:
  struct Node {
    bool folder = true;
    std::map<std::string, size_t> names;         // as the program sees them
    std::map<std::string, size_t> synced_names;  // on disk for sure
    std::string synced;                          // likewise, a file's contents
  };
  using Kind = FileCall::Kind;

  void load(size_t node, const std::string& path) {
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      const size_t child = add(node, entry.path().filename(), entry.is_directory());
      if (entry.is_directory())
        load(child, entry.path());
      else
        nodes_[child].synced = read_file(entry.path());
    }
    nodes_[node].synced_names = nodes_[node].names;
  }

  size_t add(size_t parent, const std::string& name, bool folder) {
    nodes_.push_back({.folder = folder, .names = {}, .synced_names = {}, .synced = {}});
    nodes_[parent].names[name] = nodes_.size() - 1;
    return nodes_.size() - 1;
  }

  // The folder a path lies in, and its name there; nothing for a path that is not below the root.
  std::optional<std::pair<size_t, std::string>> place(const std::string& path) const {
    if (!path.starts_with(root_ + "/")) return {};
    std::string rest = path.substr(root_.size() + 1);
    size_t node = 0;
    for (size_t slash = rest.find('/'); slash != std::string::npos; slash = rest.find('/')) {
      const auto next = nodes_[node].names.find(rest.substr(0, slash));
      if (next == nodes_[node].names.end()) return {};
      node = next->second;
      rest.erase(0, slash + 1);
    }
    return std::pair(node, rest);
  }

  std::optional<size_t> find(const std::string& path) const {
    if (path == root_) return 0;
    const auto where = place(path);
    if (!where) return {};
    const auto found = nodes_[where->first].names.find(where->second);
    if (found == nodes_[where->first].names.end()) return {};
    return found->second;
  }

  // The call that was let through has happened by now.
  void settle() {
    if (!under_way_) return;
    const FileCall call = *std::exchange(under_way_, std::nullopt);
    const auto where = place(call.path);
    const auto node = find(call.path);
    if ((call.kind == Kind::create || call.kind == Kind::lock || call.kind == Kind::make_directory) && where && !node)
      add(where->first, where->second, call.kind == Kind::make_directory);
    if (call.kind == Kind::sync && node) nodes_[*node].synced = read_file(call.path);
    if (call.kind == Kind::sync_directory && node) nodes_[*node].synced_names = nodes_[*node].names;
    if (const auto target = place(call.target); call.kind == Kind::link && node && target)
      nodes_[target->first].names[target->second] = *node;
    if ((call.kind == Kind::remove || call.kind == Kind::rename) && where && node) {
      nodes_[where->first].names.erase(where->second);
      const auto target = place(call.target);
      if (call.kind == Kind::rename && target) nodes_[target->first].names[target->second] = *node;
    }
  }

  void write_out(size_t node, const std::string& live_path, const std::string& to, Keep keep, Random& random) const {
    std::filesystem::create_directories(to);
    std::set<std::string> names;
    for (const auto& [name, child] : nodes_[node].names) names.insert(name);
    for (const auto& [name, child] : nodes_[node].synced_names) names.insert(name);
    for (const std::string& name : names) {
      const bool live = keep == Keep::names || (keep == Keep::some_of_it_all && random.below(2) == 0);
      const auto& source = live ? nodes_[node].names : nodes_[node].synced_names;
      const auto child = source.find(name);
      if (child == source.end()) continue;
      // A name that is gone has no contents but the synced ones.
      const auto now = nodes_[node].names.find(name);
      const bool still_there = now != nodes_[node].names.end() && now->second == child->second && !live_path.empty();
      const std::string path = still_there ? live_path + "/" + name : "";
      if (nodes_[child->second].folder)
        write_out(child->second, path, to + "/" + name, keep, random);
      else
        write_file(to + "/" + name, contents(nodes_[child->second].synced, path, keep, random));
    }
  }

  static std::string contents(std::string synced, const std::string& live_path, Keep keep, Random& random) {
    constexpr size_t kPage = 4096;
    if (keep == Keep::synced || live_path.empty()) return synced;
    const std::string live = read_file(live_path);
    if (keep == Keep::names || random.below(2) == 0) synced.resize(live.size(), '\0');
    for (size_t at = 0; keep == Keep::some_of_it_all && at < std::min(live.size(), synced.size()); at += kPage)
      if (random.below(2) == 0) synced.replace(at, kPage, live, at, std::min(kPage, synced.size() - at));
    return synced;
  }

  std::string root_;
  uint64_t cut_at_;
  uint64_t calls_ = 0;
  bool cut_ = false;
  std::optional<FileCall> under_way_;
  std::vector<Node> nodes_ = std::vector<Node>(1);
};

}  // namespace linblock::test
