"""A live demonstration: tune an SVM on 20,000 handwritten digits for the price of a few trainings.

Run it with ``python -m fabolas.demo``. It needs scikit-learn and no network.
"""
