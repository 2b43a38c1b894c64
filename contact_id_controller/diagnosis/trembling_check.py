"""Joints that tremble: a narrow peak in the spectrum, far above the motion's frequencies and not commanded."""

from __future__ import annotations

import numpy as np
from scipy.signal import welch

from contact_id_controller.diagnosis.case import Case
from contact_id_controller.diagnosis.even_samples import interpolated
from contact_id_controller.diagnosis.finding import Finding, Picture, fine, unknown, wrong
from contact_id_controller.logs.log import Array

LEAST_HZ = 5.0
"""Slower oscillations may be a motion."""

WINDOW_S = 2.0
"""Length of each window of the spectrum; their median is taken, so that impacts do not count."""

BAND, VALLEY, BELOW = 1.25, 2.2, 0.1
"""A line's width, as a factor of its frequency; out to the factor VALLEY the density is below this part of the line's:
a harmonic of the motion has the motion there."""

SHARE = 0.02
"""Part of a joint's rms velocity from which its trembling counts: its accelerations reach those of the motion then."""

LEAST_RAD, LEAST_STEPS = 1e-4, 1.0
"""Amplitude, rad and steps of the encoder, below which it does not."""

SHOWN_S = 1.0


def trembling(case: Case) -> Finding:
    """Report the joint that trembles most, with its frequency and amplitude."""
    name, log, samples = "trembling", case.log, case.samples
    if log.position is None:
        return unknown(name, "no positions", "positions in the log")
    if 0.5 / samples.period < VALLEY * LEAST_HZ:
        return unknown(
            name,
            f"{1.0 / samples.period:.0f} rows a second are too few",
            f"{2.0 * VALLEY * LEAST_HZ:.0f} rows a second or more",
        )
    if len(samples.time) * samples.period < 2.0 * WINDOW_S:
        return unknown(name, "the log is too short", f"{2.0 * WINDOW_S:.0f} s or more")
    position = interpolated(samples, log.position)
    hz, power = _spectrum(position, samples.period)
    found = [_line(hz, each) for each in power.T]
    wanted = None
    if log.commands.position is not None:
        wanted = _spectrum(interpolated(samples, log.commands.position), samples.period)[1]
    steps = np.array([_step(column) for column in log.position.T])
    shares = np.zeros(len(found))
    for k, (at, velocity, share) in enumerate(found):
        amplitude = np.sqrt(2.0) * velocity / (2.0 * np.pi * at)
        commanded = wanted is not None and _band(hz, wanted[:, k], at) > 0.25 * velocity**2
        if not commanded and amplitude > max(LEAST_RAD, LEAST_STEPS * steps[k]):
            shares[k] = share
    k = int(np.argmax(shares))
    if shares[k] < SHARE:
        return fine(name, f"no spectral peak above {LEAST_HZ:g} Hz in the motion of any joint")
    at, velocity, share = found[k]
    others = int(np.sum(shares > SHARE)) - 1
    more = f", {others} other joints with it" if others else ""
    shown = samples.time - samples.time[0] < SHOWN_S
    moved = position[shown, k]
    return wrong(
        name,
        f"{log.joints[k]} trembles at {at:.1f} Hz by ±{np.sqrt(2.0) * velocity / (2.0 * np.pi * at):.2g} rad, "
        f"{100 * share:.0f} % of its velocity{more}, likely",
        "lower the gains of this joint, that of the velocity first, or shorten the delay and the filters of its loop; "
        "backlash in a gear causes it, too",
        gain=float(share),
        picture=Picture(
            f"Position of {log.joints[k]}",
            "time, s",
            samples.time[shown],
            "rad",
            {"measured": moved},
        ),
    )


def _spectrum(position: Array, period: float) -> tuple[Array, Array]:
    """Frequencies (m,), Hz, and densities (m, na), (rad/s)²/Hz, of the joint velocities.

    position (n, na): rad, evenly sampled every ``period`` s.
    """
    velocity = np.gradient(position, period, axis=0)
    hz, power = welch(
        velocity,
        1.0 / period,
        nperseg=int(WINDOW_S / period),
        detrend=False,
        average="median",
        axis=0,
    )
    return hz, power


def _band(hz: Array, power: Array, at: float) -> float:
    """Power, (rad/s)², between the frequencies at / BAND and at * BAND, Hz."""
    near = (hz > at / BAND) & (hz < at * BAND)
    return float(np.sum(power[near]) * (hz[1] - hz[0]))


def _line(hz: Array, power: Array) -> tuple[float, float, float]:
    """Frequency, Hz, rms, rad/s, and rms relative to the whole spectrum, of the highest peak above LEAST_HZ.

    hz (m,): evenly spaced; power (m,): density of a joint's velocity, (rad/s)²/Hz. The third value is 0 unless the peak
    is isolated: at factors of BAND to VALLEY from its frequency, on both sides, the density stays under BELOW times it.
    """
    high = np.where(hz > LEAST_HZ, power, 0.0)
    k = int(np.argmax(high))
    at = float(max(hz[k], LEAST_HZ))
    total = float(np.sum(power) * (hz[1] - hz[0]))
    below = (hz > at / VALLEY) & (hz < at / BAND)
    above = (hz > at * BAND) & (hz < at * VALLEY)
    size = np.sqrt(_band(hz, power, at))
    largest = max(float(np.max(power[part], initial=0.0)) for part in (below, above))
    isolated = largest < BELOW * power[k] and total > 0.0
    return at, float(size), float(size / np.sqrt(total)) if isolated else 0.0


def _step(column: Array) -> float:
    """The smallest usual step of an encoder, rad."""
    steps = np.diff(np.unique(column[np.isfinite(column)]))
    return float(np.percentile(steps, 10)) if steps.size else 0.0
