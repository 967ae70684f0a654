"""Tables of an SVM's error and training time over (C, gamma, subset size), and problems made of them."""
