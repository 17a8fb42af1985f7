"""The examples of all docstrings run and show what they say."""

import doctest
import importlib

import medley
import numpy as np
import pytest


@pytest.mark.parametrize("name", ["medley", "medley.analysis", "medley.collectives", "medley.errors", "medley.insight", "medley.job",
                                  "medley.measure", "medley.messages", "medley.reduce_op"])
def test_examples(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)   # some examples write files into folders of their own
    module = importlib.import_module(name)
    failed, tried = doctest.testmod(module, extraglobs={"np": np, "medley": medley}, optionflags=doctest.ELLIPSIS)
    assert tried > 0 and failed == 0


def test_every_public_name_is_documented():
    for name in medley.__all__:
        if callable(getattr(medley, name)):
            assert getattr(medley, name).__doc__, name
