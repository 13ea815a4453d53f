// GrainKind: what grains of a kind are, and how one is made.
//
//   class Account : public Actor<Account, Deposit, GetBalance> {
//    public:
//     static constexpr std::string_view kGrainKind = "account";         // stable: it is stored and sent
//     explicit Account(const GrainContext& grain) : id_(grain.key.identity()) {}
//     ...
//   };
//   ClusterOptions options{..., .kinds = {GrainKindOf<Account>()}};
//
// Thread safety: values; `make` may be called from any thread.
#ifndef FRAKTOR_CLUSTER_GRAIN_GRAIN_KIND_H_
#define FRAKTOR_CLUSTER_GRAIN_GRAIN_KIND_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/typed/typed_actor.h"
#include "fraktor/cluster/grain/grain_filter.h"
#include "fraktor/cluster/identity/grain_key.h"

namespace fraktor::inline v0 {

// What a grain is told when it is made.
struct GrainContext {
  GrainKey key = {};
  // Higher than that of all earlier activations of this grain. A persistent one gives it to its journal
  // (PersistentActor::FencingToken), which then refuses what an earlier activation still writes.
  uint64_t token = 0;
};

struct GrainKind {
  std::string name = {};
  std::function<PropsPtr(const GrainContext& grain)> make = nullptr;
  // Around the calls that come to its grains, after those of the cluster: see grain_filter.h.
  GrainCallFilters filters = {};
  // Its grains are not ended for being idle.
  bool is_kept = false;
};

// The kind of a typed actor that has a kGrainKind and is made of a GrainContext.
template <class A>
GrainKind GrainKindOf(const PropsOptions& options = {}) {
  return GrainKind{.name = std::string(A::kGrainKind),
                   .make = [options](const GrainContext& grain) { return MakeTypedProps<A>(options, grain); }};
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_GRAIN_GRAIN_KIND_H_
