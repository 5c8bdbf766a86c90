"""Parameters as scikit-learn reads and checks them, but once for a class: either takes longer than a small round."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any, ClassVar

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import make_constraint

from unmix.engine.site import Documented


class Parameters(Documented, BaseEstimator):
    """An estimator whose parameters are read and checked quickly; it is a model, with a page among those."""

    _doc_page = "models/{name}.html"
    _parameter_constraints: ClassVar[dict[str, Any]] = {}

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """As scikit-learn reads them from the signature."""
        return super()._get_param_names()  # type: ignore[no-any-return]

    @classmethod
    @cache
    def _allowed(cls) -> dict[str, tuple[Any, list[Any]]]:
        """The default of each parameter, and what it may be."""
        allowed, signature = cls._parameter_constraints, inspect.signature(cls).parameters
        known = [(k, p.default) for k, p in signature.items() if isinstance(allowed.get(k), list)]
        return {k: (default, [make_constraint(c) for c in allowed[k]]) for k, default in known}

    def _validate_params(self) -> None:
        """As scikit-learn does, whose words an error has; defaults are valid."""
        allowed, params = self._allowed(), self.get_params(deep=False)
        for name, value in params.items():
            default, constraints = allowed.get(name, (..., ()))
            if value is not default and not any(c.is_satisfied_by(value) for c in constraints):
                return super()._validate_params()  # type: ignore[no-any-return]
