// ActorProps: the recipe of an actor. The runtime makes the instance from it, and again at each
// restart. Many actors may share a recipe.
//
//   const ActorProps& counters = PropsOf<Counter>();                                  // Counter()
//   PropsPtr greeters = MakeProps<Greeter>({.mailbox = {.capacity = 100}}, "hello");  // Greeter(std::string)
//   ActorRef counter = system.Spawn(counters);
//   ActorRef greeter = system.Spawn(*greeters, "greeter");
//
// The recipe keeps the arguments and copies them for each instance. Instances of up to 192 bytes
// live in pooled nodes.
//
// Thread safety: any thread may use a recipe.
#ifndef FRAKTOR_ACTOR_CELL_ACTOR_PROPS_H_
#define FRAKTOR_ACTOR_CELL_ACTOR_PROPS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/dispatch/dispatcher_choice.h"
#include "fraktor/actor/mailbox/mailbox_options.h"
#include "fraktor/actor/message/type_name.h"

namespace fraktor::inline v0 {

namespace actor_internal {
class ActorTree;
class NodeCache;
enum class NodeClass : uint8_t;
}  // namespace actor_internal

struct PropsOptions {
  DispatcherSelector dispatcher = {};
  MailboxOptions mailbox = {};
};

// A function without arguments that returns a typed actor.
template <class F>
concept ActorFactory = requires {
  typename std::invoke_result_t<const F&>::Ref;
};
template <class F>
using MadeBy = std::invoke_result_t<const F&>;

class ActorProps {
 public:
  ActorProps(const ActorProps&) = delete;
  ActorProps& operator=(const ActorProps&) = delete;
  virtual ~ActorProps() = default;

  std::string_view type_name() const { return layout_.type_name; }
  const PropsOptions& options() const { return options_; }
  // Whether the mailbox is unbounded and first in, first out. Most are, and a spawn is faster then.
  bool has_plain_mailbox() const { return has_plain_mailbox_; }
  // Whether the actor has a PreStart. Without one it has no turn before its first message.
  bool has_start() const { return layout_.has_start; }

  // Whether messages to the actor go to its routees (see send/routed_sending.h).
  bool is_router() const { return layout_.is_router; }
  // Called by the spawner of a router, when the router has its name and its instance, and before
  // another thread can send to it. An error is that of the spawn, and the router ends.
  virtual absl::Status PrepareRouter(actor_internal::ActorTree& tree, actor_internal::ActorSlot& slot) const;

  // Makes an instance. Throws the exceptions of its constructor, and std::bad_alloc.
  ActorInstance* Make(actor_internal::NodeCache& cache) const;
  void Unmake(actor_internal::NodeCache& cache, ActorInstance* instance) const noexcept;

  // Counts the users of a recipe: actors and PropsPtr. The last one deletes it. Recipes of PropsOf
  // are never deleted.
  void AddUser() const {
    if (!is_static_) users_.fetch_add(1, std::memory_order_relaxed);
  }
  void RemoveUser() const {
    // Release: pairs with the acquire of the last user, which deletes the recipe.
    if (!is_static_ && users_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  // The number of the type in the tree that used the recipe last: see ActorTypes. Relaxed: pairs
  // with nothing, since the value also names the tree.
  std::atomic<uint64_t>& memo() const { return memo_; }

 protected:
  struct Layout {
    std::string_view type_name;
    size_t size;
    size_t alignment;
    bool has_start;
    bool is_router = false;
  };
  ActorProps(const Layout& layout, const PropsOptions& options, bool is_static);

  virtual ActorInstance* Construct(void* memory) const = 0;

 private:
  const Layout layout_;
  const PropsOptions options_;
  const bool is_static_;
  const bool has_plain_mailbox_;
  const bool is_pooled_;
  const actor_internal::NodeClass node_class_;
  mutable std::atomic<uint32_t> users_{1};
  mutable std::atomic<uint64_t> memo_{0};
};

struct PropsUserEnder {
  void operator()(const ActorProps* props) const { props->RemoveUser(); }
};
// A recipe, which lives at least as long as this pointer.
using PropsPtr = std::unique_ptr<const ActorProps, PropsUserEnder>;

namespace props_internal {

// Whether T has a PreStart of its own. True also if it cannot be named here: private or overloaded.
template <class T, class = void>
inline constexpr bool kHasStart = true;
template <class T>
inline constexpr bool kHasStart<T, std::void_t<decltype(&T::PreStart)>> =
    !std::is_same_v<decltype(&T::PreStart), decltype(&ActorInstance::PreStart)>;

// A bridge to another class says in kHasStart whether that class has a PreStart.
template <class T>
constexpr bool HasStart() {
  if constexpr (requires { T::kHasStart; }) {
    return T::kHasStart;
  } else {
    return kHasStart<T>;
  }
}

template <class T, class... Args>
class PropsWithArguments final : public ActorProps {
 public:
  template <class... Given>
  PropsWithArguments(std::string_view type_name, const PropsOptions& options, bool is_static, Given&&... given)
      : ActorProps({.type_name = type_name, .size = sizeof(T), .alignment = alignof(T), .has_start = HasStart<T>()},
                   options, is_static),
        arguments_(std::forward<Given>(given)...) {
    static_assert(std::is_base_of_v<ActorInstance, T>, "an actor derives from ActorInstance");
  }

 private:
  ActorInstance* Construct(void* memory) const override {
    return std::apply([memory](const Args&... arguments) { return ::new (memory) T(arguments...); }, arguments_);
  }

  const std::tuple<Args...> arguments_;
};

}  // namespace props_internal

// The recipe of T with the default options. The same object at each call.
template <class T>
const ActorProps& PropsOf() {
  static const auto& props =
      *new props_internal::PropsWithArguments<T>(TypeName<T>(), PropsOptions(), /*is_static=*/true);
  return props;
}

// A recipe of Instance whose type name is that of A.
template <class A, class Instance, class... Args>
PropsPtr MakePropsFor(const PropsOptions& options, Args&&... args) {
  return PropsPtr(new props_internal::PropsWithArguments<Instance, std::decay_t<Args>...>(
      TypeName<A>(), options, /*is_static=*/false, std::forward<Args>(args)...));
}

// A recipe of T with options and the arguments of its constructor.
template <class T, class... Args>
PropsPtr MakeProps(const PropsOptions& options, Args&&... args) {
  return MakePropsFor<T, T>(options, std::forward<Args>(args)...);
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_CELL_ACTOR_PROPS_H_
