"""The contract of a model, what may be asked of it, and the estimator written once."""

from unmix.model.estimator import Model, fit_together
from unmix.model.files import load

__all__ = ["Model", "fit_together", "load"]
