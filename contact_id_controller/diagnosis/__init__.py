"""What is wrong with a log, or with the model that is to explain it: a verdict for each thing, in words."""
