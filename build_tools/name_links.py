"""Sphinx extension that links names of the package in inline code to their reference page."""

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.transforms.post_transforms import SphinxPostTransform

from build_tools.name_targets import target


class NameLinks(SphinxPostTransform):
    """Link inline code that is a public name."""

    default_priority = 5

    def run(self, **options):
        if self.env.docname.startswith("generated/reference"):
            return
        for literal in list(self.document.findall(nodes.literal)):
            if isinstance(literal.parent, (nodes.reference, pending_xref, nodes.title)):
                continue
            found = target(literal.astext(), self.env.docname)
            if found is not None:
                link = pending_xref("", refdomain="py", reftype="obj", reftarget=found, refexplicit=True, refwarn=False,
                                    refdoc=self.env.docname)
                literal.replace_self(link)
                link += literal


def setup(app):
    app.add_post_transform(NameLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
