"""Modules in notebooks: a tree that opens, with shapes and numbers of parameters."""

from html import escape

__all__ = ["module_html"]


def module_html(module):
    """
    Return the HTML of a module.

    Parameters
    ----------
    module : Module

    Returns
    -------
    str
        HTML: each module with its options, its parameters and buffers with their shapes, how many numbers there are to
        learn, and what is in it.

    Examples
    --------
    >>> "20 parameters" in nn.Linear(4, 4)._repr_html_()
    True
    """
    return f"<div>{_tree('', module, True)}</div>"


def _tree(name, module, is_open):
    own = [(key, value, "" if value.requires_grad else ", frozen")
           for key, value in module.named_parameters(recurse=False)]
    own += [(key, value, ", buffer") for key, value in module.named_buffers(recurse=False)]
    count = sum(parameter.numel() for parameter in module.parameters())
    title = (f"{escape(name)}{': ' if name else ''}<b>{escape(module._get_name())}</b>({escape(module.extra_repr())}) "
             f"&middot; {count:,} parameters")
    rows = "".join(f"<li><code>{escape(key)}</code> {tuple(value.shape)}, "
                   f"{str(value.dtype).rpartition('.')[2]}{remark}</li>"
                   for key, value, remark in own)
    children = "".join(f"<li>{_tree(key, child, False)}</li>" for key, child in module.named_children())
    if not rows and not children:
        return title
    opening = '<details open="">' if is_open else "<details>"
    return f"{opening}<summary>{title}</summary><ul>{rows}{children}</ul></details>"
