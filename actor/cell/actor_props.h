// How an actor is made, and made again when it is restarted: a recipe that many actors share.
//
//   const ActorProps& counters = PropsOf<Counter>();                         // Counter has a constructor without arguments
//   PropsPtr greeters = MakeProps<Greeter>({.mailbox = {.capacity = 100}}, "hello");   // Greeter(std::string)
//   tree.Spawn(context, *greeters);
//
// Arguments are kept, and copied for each actor. Instances live in pooled nodes if they have up to 192 bytes.
//
// Thread safety: a recipe is a constant, but for the count of its users and what it remembers of the last tree.
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
#include "fraktor/actor/message/node_pool.h"
#include "fraktor/actor/message/type_name.h"

namespace fraktor::inline v0 {

struct PropsOptions {
  DispatcherSelector dispatcher = {};
  MailboxOptions mailbox = {};
};

// A function without arguments that makes a typed actor.
template <class F>
concept ActorFactory = requires {
  typename std::invoke_result_t<const F&>::Ref;
};
template <class F>
using MadeBy = std::invoke_result_t<const F&>;

class ActorTree;

class ActorProps {
 public:
  ActorProps(const ActorProps&) = delete;
  ActorProps& operator=(const ActorProps&) = delete;
  virtual ~ActorProps() = default;

  std::string_view type_name() const { return layout_.type_name; }
  const PropsOptions& options() const { return options_; }
  // Whether an actor is spawned in the quick way, as most are.
  bool has_plain_mailbox() const { return has_plain_mailbox_; }
  // Whether an actor has anything to do before its first message.
  bool has_start() const { return layout_.has_start; }

  // Whether what is sent to the actor goes to others (see send/routed_sending.h).
  bool is_router() const { return layout_.is_router; }
  // For a router, which has its place, name and instance, but has not begun: before anybody can send to it.
  virtual void PrepareRouter(ActorTree& tree, ActorSlot& slot) const;

  // Throws what the constructor throws, and std::bad_alloc.
  ActorInstance* Make(NodeCache& cache) const;
  void Unmake(NodeCache& cache, ActorInstance* instance) const noexcept;

  // A recipe lives as long as it has users; one of PropsOf for ever.
  void AddUser() const {
    if (!is_static_) users_.fetch_add(1, std::memory_order_relaxed);
  }
  void RemoveUser() const {
    // Release, and acquire by the last: what others did with the recipe is before its end.
    if (!is_static_ && users_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  // A place for one tree to remember something; see ActorTree::TypeOf. Relaxed: a value that makes sense by itself.
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
  const NodeClass node_class_;
  mutable std::atomic<uint32_t> users_{1};
  mutable std::atomic<uint64_t> memo_{0};
};

struct PropsUserEnder {
  void operator()(const ActorProps* props) const { props->RemoveUser(); }
};
// A user of a recipe.
using PropsPtr = std::unique_ptr<const ActorProps, PropsUserEnder>;

namespace props_internal {

// Whether T has a PreStart of its own: also if that cannot be named here, since it is private or one of several.
template <class T, class = void>
inline constexpr bool kHasStart = true;
template <class T>
inline constexpr bool kHasStart<T, std::void_t<decltype(&T::PreStart)>> =
    !std::is_same_v<decltype(&T::PreStart), decltype(&ActorInstance::PreStart)>;

// An instance that only bridges to another class says itself whether that has one.
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

// The recipe for T, with the usual options.
template <class T>
const ActorProps& PropsOf() {
  static const auto& props =
      *new props_internal::PropsWithArguments<T>(TypeName<T>(), PropsOptions(), /*is_static=*/true);
  return props;
}

// The recipe for an Instance, which is shown as an A.
template <class A, class Instance, class... Args>
PropsPtr MakePropsFor(const PropsOptions& options, Args&&... args) {
  return PropsPtr(new props_internal::PropsWithArguments<Instance, std::decay_t<Args>...>(
      TypeName<A>(), options, /*is_static=*/false, std::forward<Args>(args)...));
}

template <class T, class... Args>
PropsPtr MakeProps(const PropsOptions& options, Args&&... args) {
  return MakePropsFor<T, T>(options, std::forward<Args>(args)...);
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_CELL_ACTOR_PROPS_H_
