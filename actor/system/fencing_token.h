// The fencing token of an actor: which of several that were made for the same thing is the latest. Whoever makes an actor
// for the only one of its kind (a grain of a cluster) gives it a token that only grows, and what the actor writes to
// refuses a lower one than it has seen.
//
//   const FencingTokenScope scope(token);                     // while the actor is constructed
//   ::new (memory) Account(...);
//   ...
//   PersistentActor::PersistentActor() : fencing_token_(CurrentFencingToken()) {}
//
// It belongs to the context of an actor and not to its arguments, so that actors need not pass it on.
//
// Thread safety: of each thread.
#ifndef FRAKTOR_ACTOR_SYSTEM_FENCING_TOKEN_H_
#define FRAKTOR_ACTOR_SYSTEM_FENCING_TOKEN_H_

#include <cstdint>

namespace fraktor::inline v0 {

// Of the actor that is being constructed on this thread; 0 if it has none, or none is.
uint64_t CurrentFencingToken();

// Scopes end in the reverse order of their beginnings.
class FencingTokenScope {
 public:
  explicit FencingTokenScope(uint64_t token);
  ~FencingTokenScope();
  FencingTokenScope(const FencingTokenScope&) = delete;
  FencingTokenScope& operator=(const FencingTokenScope&) = delete;

 private:
  const uint64_t outer_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_SYSTEM_FENCING_TOKEN_H_
