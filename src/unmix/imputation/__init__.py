"""Missing cells filled by the models that fill held-out ones best; estimates from several fillings as one answer."""

from unmix.imputation.imputer import Imputer
from unmix.imputation.pool import Pooled, pool

__all__ = ["Imputer", "Pooled", "pool"]
