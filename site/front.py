"""The front page."""


def page(root, days):
    return "# CUDA, day by day\n"
