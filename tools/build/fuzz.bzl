"""Fuzz tests: one source, two programs.

An ordinary build runs the target over its checked-in corpus, as a test like every other. With --config=fuzz it is a libFuzzer program:

    bazel run --config=fuzz //actor/path:path_fuzz_test -- -max_total_time=120 NEW_INPUTS_FOLDER
"""

load("@rules_cc//cc:defs.bzl", "cc_test")
load("//tools/build:cc.bzl", "fraktor_cc_library")

def fraktor_cc_fuzz_test(name, corpus, srcs, deps = [], size = "small", **kwargs):
    """A fuzz test.

    Args:
      name: the target's name, which ends in _fuzz_test.
      corpus: the folder of inputs, in this package; every file in it is one.
      srcs: the source that defines LLVMFuzzerTestOneInput.
      deps: what it tests.
      size: as for cc_test; small by default.
      **kwargs: as for cc_test.
    """
    fraktor_cc_library(
        name = name + "_target",
        testonly = True,
        srcs = srcs,
        alwayslink = True,
        deps = deps,
    )
    cc_test(
        name = name,
        size = size,
        data = native.glob([corpus + "/**"]),
        args = select({
            "//tools/build:fuzzing": ["-max_total_time=30"],
            "//conditions:default": [],
        }) + [native.package_name() + "/" + corpus],
        linkopts = select({
            "//tools/build:fuzzing": ["-fsanitize=fuzzer"],
            "//conditions:default": [],
        }),
        deps = [":" + name + "_target"] + select({
            "//tools/build:fuzzing": [],
            "//conditions:default": ["//tools/build:corpus_runner"],
        }),
        **kwargs
    )
