"""Speed and robustness of every model, and the laws that judge them."""
