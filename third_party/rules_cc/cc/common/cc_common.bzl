"""rules_cc for a Bazel whose C++ rules are built in."""

load(":builtin.bzl", "BUILTIN_CC_COMMON")

cc_common = BUILTIN_CC_COMMON
