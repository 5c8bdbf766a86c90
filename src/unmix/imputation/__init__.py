"""Missing cells filled by the models that fill held-out ones best."""

from unmix.imputation.imputer import Imputer

__all__ = ["Imputer"]
