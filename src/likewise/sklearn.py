"""Estimators that follow the conventions of scikit-learn."""
