#include "fraktor/utils/shared/shared.h"

#include <cstdio>
#include <cstdlib>

namespace fraktor::inline v0::shared_internal {
namespace {

[[noreturn]] void Die(const char* text) {
  std::fputs(text, stderr);
  std::abort();
}

}  // namespace

void DieOfTooManyOwners() {
  Die("fraktor::Shared: an object has more than 2^31 owners or weak pointers; look for a leak of Shared or "
      "WeakShared\n");
}

void DieOfSharingTheDead() {
  Die("fraktor::ShareThis: the object has no owner; call it neither in a constructor or destructor nor on an object "
      "that MakeShared did not make\n");
}

void DieOfDisplacedBase() {
  Die("fraktor::MakeShared: SharedObject is not at the start of the object; make it the first base, and give the first "
      "base a virtual destructor if a class derived from it has virtual functions\n");
}

}  // namespace fraktor::inline v0::shared_internal
