// DispatcherSelector: the pool of workers that an actor runs on. It is a pool that every system has
// (DispatcherChoice), or a pool of the program, by its name.
//
//   ActorSystemOptions options{.config = {.system_name = "shop"}};
//   options.dispatchers = {{.name = "db", .workers = 4, .may_block = true},
//                          {.name = "reports", .budget = 16, .nice = 19}};
//   ActorSystem system(options);
//   auto orders = system.Spawn<Orders>("orders", {.dispatcher = "db"});
//   auto audit = system.Spawn<Audit>("audit", {.dispatcher = "reports"});
//   auto printer = system.Spawn<Printer>("printer", {.dispatcher = DispatcherChoice::kPinned});
//
// DispatcherOptions (dispatchers.h) are the options of a pool: `.cpus = {2, 3}` binds its threads
// to CPUs. That header describes all pools.
#ifndef FRAKTOR_ACTOR_DISPATCH_DISPATCHER_CHOICE_H_
#define FRAKTOR_ACTOR_DISPATCH_DISPATCHER_CHOICE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace fraktor::inline v0 {

// The pools that every system has.
enum class DispatcherChoice : uint8_t {
  kAutomatic,  // As kDefault; for ActorSystem::SpawnSystemActor as kSystem.
  kSystem,     // The system pool, which is reserved for the runtime's own actors.
  kPinned,     // A thread of its own, where the actor may block.
  kDefault,    // The default pool, also for an actor that SpawnSystemActor spawns.
};

// One of the choices above, or the name of a pool of the program. Children do not inherit it: a
// child runs on the default pool, unless its own options say otherwise.
//
// Thread safety: a value.
class DispatcherSelector {
 public:
  DispatcherSelector() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): `.dispatcher = DispatcherChoice::kPinned`
  DispatcherSelector(DispatcherChoice choice) : choice_(choice) {}
  // NOLINTNEXTLINE(google-explicit-constructor): `.dispatcher = "db"`
  template <class Name>
  requires std::is_convertible_v<const Name&, std::string_view> DispatcherSelector(const Name& name)
      : choice_(kNamed), name_(std::string_view(name)) {}

  bool is_named() const { return choice_ == kNamed; }
  // A value of the enum, unless is_named().
  DispatcherChoice choice() const { return choice_; }
  // Empty unless is_named().
  const std::string& name() const { return name_; }

  // False if `selector` is named.
  friend bool operator==(const DispatcherSelector& selector, DispatcherChoice choice) {
    return selector.choice_ == choice;
  }

 private:
  // No value of the enum.
  static constexpr auto kNamed = static_cast<DispatcherChoice>(UINT8_MAX);

  DispatcherChoice choice_ = DispatcherChoice::kAutomatic;
  std::string name_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_DISPATCH_DISPATCHER_CHOICE_H_
