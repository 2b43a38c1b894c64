"""The whole step at 4 contacts on Solo12 beside pinocchio.computeAllTerms, in one run.

    python benchmarks/solo12_step.py

Prints the medians and their ratio for every contact model. The aim for ``coulomb/qp`` is a ratio of
at most 15, and of at most 6 with the compiled kernels; measured ones stand in results/benchmarks.md.
For more contacts, other solvers and JSON: ``python -m experiments benchmark``.
"""

import checkout  # noqa: F401  before what is not installed

from experiments.benchmark.speed import measure, table

if __name__ == "__main__":
    print(table(measure([4])))
