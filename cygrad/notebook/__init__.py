"""HTML of tensors, modules and graphs for notebooks: without scripts, created on demand."""

from cygrad.notebook.bundles import mimebundle
from cygrad.notebook.modules import module_html
from cygrad.notebook.tensors import tensor_html

__all__ = ["METHODS", "mimebundle", "module_html", "tensor_html"]

METHODS = {"_repr_html_": tensor_html, "_repr_mimebundle_": mimebundle}
