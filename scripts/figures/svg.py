"""Helpers for the figures that scripts/draw_figures.py writes: an SVG document with one style sheet, for light and dark
pages, and the few shapes that the figures consist of.

Kinds of cells: "w0" to "w3" are four colours, "f0" to "f3" the same ones, faint; "cell" and "idle" are neutral.
"""

from xml.sax.saxutils import escape, quoteattr

STYLE = """<style>
 text { font: 14px system-ui, sans-serif; fill: #1f2328 }
 .t { font-weight: 600 } .s { font-size: 12.5px; fill: #59636e } .m { text-anchor: middle } .e { text-anchor: end }
 .p { font-size: 11.5px } .on { fill: #ffffff; text-anchor: middle } .n { font-size: 12.5px }
 .idle { fill: #e3e7eb; stroke: #d1d9e0 } .cell { fill: #f6f8fa; stroke: #c4ccd4 } .frame { fill: none; stroke: #59636e }
 .ring { fill: none; stroke: #1f2328; stroke-width: 2 } .dash { fill: none; stroke: #59636e; stroke-dasharray: 4 3 }
 .w0 { fill: #2f6fde } .w1 { fill: #17845b } .w2 { fill: #b9600f } .w3 { fill: #9a45bd }
 .f0 { fill: #2f6fde; fill-opacity: .22 } .f1 { fill: #17845b; fill-opacity: .22 }
 .f2 { fill: #d9822b; fill-opacity: .28 } .f3 { fill: #a452c4; fill-opacity: .22 }
 .arrow { stroke: #59636e; stroke-width: 1.4; fill: none } .head { fill: #59636e }
 .hot { stroke: #b9600f; stroke-width: 2 } .hothead { fill: #b9600f }
 @media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .s { fill: #9198a1 } .on { fill: #ffffff }
  .idle { fill: #2b323b; stroke: #3d444d } .cell { fill: #161b22; stroke: #4a525c } .frame { stroke: #9198a1 }
  .ring { stroke: #e6edf3 } .dash { stroke: #9198a1 }
  .w0 { fill: #3b78e0 } .w1 { fill: #1f8a60 } .w2 { fill: #b8651c } .w3 { fill: #9a54b8 }
  .f0 { fill: #3b78e0; fill-opacity: .38 } .f1 { fill: #1f9a6c; fill-opacity: .38 }
  .f2 { fill: #c9742a; fill-opacity: .4 } .f3 { fill: #9a54b8; fill-opacity: .42 }
  .arrow { stroke: #9198a1 } .head { fill: #9198a1 } .hot { stroke: #e0803f } .hothead { fill: #e0803f }
 }
</style>
<defs>
<marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto"><path d="M0,0L8,4L0,8z" class="head"/></marker>
<marker id="h" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0,0L8,4L0,8z" class="hothead"/></marker>
</defs>"""


class Figure:
    """A picture of width x height; `label` is its description for those who do not see it."""

    def __init__(self, width, height, label):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" aria-label={quoteattr(label)}>',
            STYLE,
        ]

    def text(self, x, y, words, kind=""):
        """Kinds: t title, s small and grey, n small, m centred at x, e ending at x, on white."""
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}"' + (f' class="{kind}"' if kind else "") + f">{escape(str(words))}</text>"
        )

    def rect(self, x, y, width, height, kind="cell", radius=3):
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius:g}" class="{kind}"/>'
        )

    def cell(self, x, y, width, height, kind="cell", words="", small=True):
        """A rectangle with words in its middle."""
        self.rect(x, y, width, height, kind)
        if words != "":
            size = "n " if small else ""
            self.text(
                x + width / 2, y + height / 2 + 4.5, words, size + ("on" if kind[0] == "w" else "m")
            )

    def line(self, x1, y1, x2, y2, kind="arrow"):
        self.parts.append(f'<path d="M{x1:g},{y1:g}L{x2:g},{y2:g}" class="{kind}"/>')

    def arrow(self, x1, y1, x2, y2, hot=False):
        self.path(f"M{x1:g},{y1:g}L{x2:g},{y2:g}", hot)

    def path(self, path, hot=False):
        """An arrow along a path."""
        self.parts.append(
            f'<path d="{path}" class="arrow{" hot" if hot else ""}" marker-end="url(#{"h" if hot else "a"})"/>'
        )

    def circle(self, x, y, radius, kind="cell", words=""):
        self.parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" class="{kind}"/>')
        if words != "":
            self.text(x, y + 4.5, words, "n " + ("on" if kind[0] == "w" else "m"))

    def key(self, x, y, entries):
        """A legend: [(kind, words)], one after the other from left to right."""
        for kind, words in entries:
            self.rect(x, y, 14, 14, kind)
            self.text(x + 20, y + 11.5, words, "s")
            x += 20 + 6.7 * len(words) + 18

    def svg(self):
        return "\n".join([*self.parts, "</svg>", ""])
