"""What the scripts that draw have in common."""


def matplotlib_or_exit(script, backend):
    """The module matplotlib; where it is missing, one line that names its package, and exit code 1."""
    try:
        import matplotlib
    except ImportError:
        raise SystemExit(
            f"{script}: needs matplotlib (Debian and Ubuntu: apt-get install python3-matplotlib)"
        ) from None
    matplotlib.use(backend)
    return matplotlib
