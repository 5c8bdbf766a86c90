"""Topic models: a document is a mixture of topics, a topic is a distribution over words."""

from unmix.topic.lda import LatentDirichletAllocation

__all__ = ["LatentDirichletAllocation"]
