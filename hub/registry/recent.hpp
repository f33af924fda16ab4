// What was found out lately, by a name; there is an end to it. Not for several threads at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace neuron_kernels::hub::registry {

template <class Value>
class Recent {
 public:
  /// Keeps the last `most` values that were added or asked for, and up to as many older ones.
  explicit Recent(std::size_t most) : most_(most) {}

  std::optional<Value> find(const std::string& key) {
    if (const auto found = recent_.find(key); found != recent_.end()) return found->second;
    const auto found = older_.find(key);
    if (found == older_.end()) return std::nullopt;
    Value value = found->second;
    add(key, value);
    return value;
  }

  void add(const std::string& key, Value value) {
    if (recent_.size() >= most_) {
      older_ = std::move(recent_);
      recent_.clear();
    }
    recent_.emplace(key, std::move(value));
  }

  void clear() {
    recent_.clear();
    older_.clear();
  }

 private:
  std::size_t most_;
  std::unordered_map<std::string, Value> recent_, older_;
};

}  // namespace neuron_kernels::hub::registry
