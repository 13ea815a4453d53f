#!/usr/bin/env bash
exec python3 docs/header_examples.py "$@"
