"""The filter before the dynamics estimator: the same delay for all signals."""

import numpy as np
import pytest
from scipy.signal import lfilter

from contact_id_controller.estimation.filters import LowPass
from contact_id_controller.exceptions import ConfigurationError, StateError


def test_low_pass_is_scipy_s_first_order_filter():
    signals, share = np.random.default_rng(0).normal(size=(200, 3)), 1.0 - np.exp(-0.2 * np.pi)
    low_pass = LowPass(3, 100.0, 1e-3)
    found = np.array([low_pass(x).copy() for x in signals])
    begun = (1.0 - share) * signals[0]  # of a filter that stands at the first sample
    expected, _ = lfilter([share], [1.0, share - 1.0], signals, axis=0, zi=begun[None])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("cutoff_hz", [None, np.inf])
def test_without_cutoff_samples_pass(cutoff_hz):
    low_pass, signals = LowPass(2, cutoff_hz, 1e-3), np.random.default_rng(1).normal(size=(5, 2))
    for x in signals:
        np.testing.assert_allclose(low_pass(x), x, rtol=1e-14)


def test_reset_begins_at_the_next_sample():
    low_pass = LowPass(1, 10.0, 1e-3)
    low_pass([5.0])
    low_pass.reset()
    assert low_pass([1.0]) == 1.0


def test_bad_filters_and_samples_are_refused():
    for bad in (0.0, -1.0, np.nan):
        with pytest.raises(ConfigurationError, match="cutoff_hz"):
            LowPass(1, bad, 1e-3)
    for bad in (0.0, np.inf, np.nan):
        with pytest.raises(ConfigurationError, match="period_s"):
            LowPass(1, 10.0, bad)
    low_pass = LowPass(2, 10.0, 1e-3)
    low_pass([1.0, 2.0])
    for bad in ([1.0], [np.nan, 0.0]):
        with pytest.raises(StateError):
            low_pass(bad)
    np.testing.assert_allclose(low_pass([1.0, 2.0]), [1.0, 2.0])  # the refused have left no trace


def test_some_signals_begin_anew_at_the_next_sample():
    low_pass = LowPass(2, 10.0, 1e-3)
    low_pass([5.0, 5.0])
    low_pass.begin(np.array([True, False]))
    found = low_pass([1.0, 1.0]).copy()
    assert found[0] == 1.0 and 4.5 < found[1] < 5.0
    assert 1.0 < low_pass([2.0, 1.0])[0] < 1.5, "and no later one"
