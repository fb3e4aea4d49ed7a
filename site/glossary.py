"""The glossary with links back to the pages that use a term."""


def read(text):
    return []


def uses(terms, texts):
    return {}


def page(text, terms, used, labels, run):
    return run.page(text, "docs/glossary.md")


def of_day(terms, day):
    return ""
