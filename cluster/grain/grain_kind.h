// GrainKind: what grains of a kind are, and how one is made.
//
//   class Account : public Actor<Account, Deposit, GetBalance> {
//    public:
//     static constexpr std::string_view kGrainKind = "account";         // stable: it is stored and sent
//     explicit Account(const GrainContext& grain) : id_(grain.key.identity()) {}
//     void On(Context& context, const Deposit& deposit) { cents_ += deposit.cents; }
//     Balance On(Context& context, const GetBalance& question) { return {id_, cents_}; }
//
//    private:
//     const std::string id_;
//     int64_t cents_ = 0;
//   };
//
//   ClusterOptions options{.kinds = {GrainKindOf<Account>()}};
//
// One that is made of more than that:
//
//   GrainKind savings{.name = "savings", .make = [rates](const GrainContext& grain) {
//     return MakeTypedProps<Savings>(PropsOptions(), GrainSeed(grain), rates);      // Savings(const GrainContext&, Rates)
//   }};
//
// Thread safety: values; `make` may be called from any thread.
#ifndef FRAKTOR_CLUSTER_GRAIN_GRAIN_KIND_H_
#define FRAKTOR_CLUSTER_GRAIN_GRAIN_KIND_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/system/fencing_token.h"
#include "fraktor/actor/typed/typed_actor.h"
#include "fraktor/cluster/grain/grain_filter.h"
#include "fraktor/cluster/identity/grain_key.h"

namespace fraktor::inline v0 {

// What a grain is told when it is made.
struct GrainContext {
  GrainKey key = {};
  // Higher than that of all earlier activations of this grain. A persistent actor that is made of a GrainSeed gives it to
  // its journal by itself, which then refuses what an earlier activation still writes.
  uint64_t token = 0;
};

// What recipes of grains keep: an actor gets it as its GrainContext, and is constructed within a FencingTokenScope.
class GrainSeed {
 public:
  explicit GrainSeed(GrainContext grain) : grain_(std::move(grain)) {}

  // A GrainContext that lives until the constructor has returned.
  struct Planted : FencingTokenScope, GrainContext {
    explicit Planted(const GrainContext& grain) : FencingTokenScope(grain.token), GrainContext(grain) {}
  };
  operator Planted() const { return Planted(grain_); }  // NOLINT(google-explicit-constructor): that is what it is for

 private:
  GrainContext grain_;
};

struct GrainKind {
  std::string name = {};
  std::function<PropsPtr(const GrainContext& grain)> make = nullptr;
  // Around the calls that come to its grains, after those of the cluster: see grain_filter.h.
  GrainCallFilters filters = {};
  // Its grains are not ended for being idle.
  bool is_kept = false;
  // They run on the oldest member that hosts the kind, not each on the one that its key is hashed to.
  bool is_on_oldest = false;
};

// The kind of a typed actor that has a kGrainKind and is made of a GrainContext.
template <class A>
GrainKind GrainKindOf(const PropsOptions& options = {}) {
  static_assert(!std::is_abstract_v<A>,
                "this grain is abstract: it does not override something that it has to, such as PersistenceId() of an "
                "event-sourced actor");
  static_assert(
      std::is_abstract_v<A> || std::is_constructible_v<A, const GrainSeed&>,
      "a grain is made of its GrainContext: give it a public constructor `explicit A(const GrainContext& grain)`, or "
      "set GrainKind::make for one that is made of something else");
  return GrainKind{.name = std::string(A::kGrainKind), .make = [options](const GrainContext& grain) {
                     return MakeTypedProps<A>(options, GrainSeed(grain));
                   }};
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_GRAIN_GRAIN_KIND_H_
