"""A live demonstration: tune an SVM on 20,000 handwritten digits in about a minute.

Run it with ``fabolas demo`` or ``python -m fabolas.demo``. It needs scikit-learn, but no network.
"""
