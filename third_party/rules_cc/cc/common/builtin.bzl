"""A .bzl file cannot give one of its own names to a builtin of the same name, so the builtin passes through here."""

BUILTIN_CC_INFO = CcInfo

BUILTIN_CC_COMMON = cc_common
