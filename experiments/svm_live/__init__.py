"""Figure 3 of the paper: an SVM tuned live, without a grid."""
