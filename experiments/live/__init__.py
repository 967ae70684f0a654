"""Live searches: every trial is a real training, and time is measured. Shared by `svm_live` and `networks`."""
