// FencingTokenScope: gives an actor its fencing token while it is constructed.
//
//   const FencingTokenScope scope(7);              // around the constructor of the actor
//   const uint64_t token = CurrentFencingToken();  // 7, in that constructor
//
// A cluster may activate a grain on two nodes for a short time. Each activation gets a higher token
// than the ones before, and a journal rejects writes with a lower token than it has seen. The token
// is not an argument of the actor, so actors need not pass it on.
//
// Thread safety: each thread has its own token.
#ifndef FRAKTOR_ACTOR_SYSTEM_FENCING_TOKEN_H_
#define FRAKTOR_ACTOR_SYSTEM_FENCING_TOKEN_H_

#include <cstdint>

namespace fraktor::inline v0 {

// The token of the actor that this thread constructs; 0 if there is none.
uint64_t CurrentFencingToken();

// Scopes of a thread nest.
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
