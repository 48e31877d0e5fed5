"""All that a front end may show of a value, by MIME type."""

__all__ = ["mimebundle"]

FORMS = {"text/html": "_repr_html_", "image/svg+xml": "_repr_svg_"}


def mimebundle(value, include=None, exclude=None):
    """
    Return all representations of a value by MIME type, for IPython's ``_repr_mimebundle_``.

    Parameters
    ----------
    value : Tensor, Module or a picture of a graph
    include : collection of str, optional
        The MIME types to make; all by default.
    exclude : collection of str, optional
        MIME types to leave out.

    Returns
    -------
    dict
        MIME type -> text.

    Examples
    --------
    >>> sorted(cygrad.ones(3)._repr_mimebundle_())
    ['text/html', 'text/plain']
    """
    makers = {"text/plain": value.__repr__}
    makers.update((kind, getattr(value, name)) for kind, name in FORMS.items() if hasattr(value, name))
    return {kind: make() for kind, make in makers.items()
            if (not include or kind in include) and kind not in (exclude or ())}
