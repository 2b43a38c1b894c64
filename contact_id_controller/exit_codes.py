"""Exit codes of ``contact_id``.

Code 1 always means that a robot fell.
"""

DONE = 0
FELL = 1
REFUSED = 2
NOT_ALL_WELL = 3
BUG = 70
BROKEN_PIPE = 141
INTERRUPTED = 130

MEANINGS = {
    DONE: "done",
    FELL: "a robot fell (demo, plan --execute, report, robustness)",
    REFUSED: "refused or not possible, with the reason in one line",
    NOT_ALL_WELL: "done, and something is not as it should be: check found errors, replay other "
    "torques than those of the run, label frames without a certified answer, diagnose something "
    "wrong, an experiment another result than it states",
    BUG: "an error of this program, with a traceback",
    INTERRUPTED: "interrupted",
}
