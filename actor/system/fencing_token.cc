#include "fraktor/actor/system/fencing_token.h"

#include <cstdint>
#include <utility>

namespace fraktor::inline v0 {
namespace {

thread_local uint64_t current_token = 0;

}  // namespace

uint64_t CurrentFencingToken() { return current_token; }

FencingTokenScope::FencingTokenScope(uint64_t token) : outer_(std::exchange(current_token, token)) {}

FencingTokenScope::~FencingTokenScope() { current_token = outer_; }

}  // namespace fraktor::inline v0
