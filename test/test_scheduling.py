"""Real-time priority: taken where it is granted, one warning where it is not."""

import os

import pytest

from contact_id_controller.ros import scheduling


def test_zero_changes_nothing(monkeypatch):
    monkeypatch.setattr(os, "sched_setscheduler", lambda *_: pytest.fail("was called"))
    assert not scheduling.raise_priority(0, pytest.fail)


def test_every_thread_gets_the_priority(monkeypatch):
    given = {}
    monkeypatch.setattr(os, "sched_setscheduler", lambda *call: given.update({call[0]: call[1:]}))
    assert scheduling.raise_priority(40, pytest.fail)
    assert os.getpid() in given
    assert {policy for policy, _ in given.values()} == {os.SCHED_FIFO}
    assert {parameter.sched_priority for _, parameter in given.values()} == {40}


def test_refusal_is_one_warning(monkeypatch):
    def refuse(*_):
        raise PermissionError("Operation not permitted")

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    warnings = []
    assert not scheduling.raise_priority(40, warnings.append)
    assert len(warnings) == 1 and "realtime_priority 40" in warnings[0]
