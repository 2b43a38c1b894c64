"""What a checkout can measure, and the package does not bring: papers, benchmark, faults."""
