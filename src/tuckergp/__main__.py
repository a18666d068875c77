"""``python -m tuckergp`` is the command line."""

from tuckergp.cli import main

if __name__ == "__main__":
    main()
