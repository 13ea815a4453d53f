#include "fraktor/actor/cell/internal/temp_names.h"

#include <optional>
#include <utility>

#include "fraktor/actor/path/internal/auto_name.h"

namespace fraktor::inline v0::actor_internal {

using path_internal::ParseAutoName;
using path_internal::TempName;

const std::string* TempNames::Find(ActorRef promise) const {
  const auto found = numbers_.find(promise.Plain());
  return found == numbers_.end() ? nullptr : &entries_.at(found->second).name;
}

const std::string& TempNames::NameOf(ActorRef promise, std::string_view target_name) {
  if (const std::string* const name = Find(promise)) return *name;
  if (entries_.size() >= forget_at_) ForgetEnded();
  const uint64_t number = next_number_++;
  numbers_[promise.Plain()] = number;
  Entry& entry = entries_[number];
  entry = {.promise = promise.Plain(), .name = TempName(target_name, number)};
  return entry.name;
}

ActorRef TempNames::FindByName(std::string_view name) const {
  const size_t dollar = name.rfind('$');
  if (dollar == std::string_view::npos) return {};
  const std::optional<uint64_t> number = ParseAutoName(name.substr(dollar));
  if (!number.has_value()) return {};
  const auto found = entries_.find(*number);
  return found == entries_.end() || found->second.name != name ? ActorRef() : found->second.promise;
}

void TempNames::ForgetEnded() {
  absl::erase_if(entries_, [this](const auto& entry) {
    const bool is_over = !entry.second.promise.IsCurrent();
    if (!is_over || entry.first + kRemembered >= next_number_) return false;
    numbers_.erase(entry.second.promise);
    return true;
  });
  forget_at_ = 2 * entries_.size() + kRemembered;
}

}  // namespace fraktor::inline v0::actor_internal
